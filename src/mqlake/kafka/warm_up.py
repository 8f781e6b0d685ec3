"""Compile the kernels for Kafka's logs, or load them from the cache, before they are needed.

`python -m mqlake.kafka.warm_up` fills the cache once, at set-up.
"""

from __future__ import annotations

from mqlake.formats.kafka.compression import Compression
from mqlake.formats.kafka.file_name import Kind, file_name
from mqlake.formats.kafka.record_batch import NewRecord, encode
from mqlake.formats.kafka.time_index import TimestampOffset
from mqlake.kafka.batches.scan import BatchScan
from mqlake.kafka.compiled.headers import header_spans
from mqlake.kafka.index.rows import index_rows
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.records.scan import RecordScan
from mqlake.kernels.values import are_text, copy_spans
from mqlake.storage.memory import MemoryDirectory, MemoryFile


def load() -> None:
    """Call each kernel once, on a log of two batches, one of them compressed."""
    record = NewRecord(0, b"key", b"value", [("name", b"value")])
    log = encode(0, [record]) + encode(1, [record], compression=Compression.GZIP)
    for batches in BatchScan(MemoryFile(log)):
        index_rows(batches.rows, 0, 0, TimestampOffset(-1, 0))
    directory = MemoryDirectory({f"p/{file_name(0, Kind.LOG)}": log})
    for records in RecordScan(Partition(directory, "p")):
        rows = records.rows
        at, counts = rows["headers_at"].copy(), rows["header_count"].copy()
        name_at, name_lengths, _, _ = header_spans(records.buffer, at, counts)
        are_text(records.buffer, name_at, name_lengths)
        copy_spans(records.buffer, name_at, name_lengths)


if __name__ == "__main__":
    load()
