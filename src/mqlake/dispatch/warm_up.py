"""Compile the kernels, or load them from the cache, before they are needed.

`python -m mqlake.dispatch.warm_up` fills the cache once, at set-up. A process that must answer
quickly, such as the daemon that forks Spark's workers, calls `load`.
"""

from __future__ import annotations

import numpy as np

from mqlake.dispatch import adjacent, decode, digest, kernel, queue_read
from mqlake.dispatch.batch import Batch
from mqlake.dispatch.derived import index_entries, queue_entries
from mqlake.dispatch.scan import SegmentScan
from mqlake.dispatch.writing import encode, puts
from mqlake.formats import consume_queue, record
from mqlake.formats.consume_queue import QueueEntry
from mqlake.formats.host import V4_SIZE
from mqlake.formats.properties import KEYS, TAGS, UNIQ_KEY
from mqlake.storage.memory import MemoryFile


def load(*, export: bool = True, live: bool = True) -> None:
    """Call each kernel once, on a log of one message.

    Args:
        export: also load the kernels for Arrow columns.
        live: also load the kernels of a live store, which write records and read queues.
    """
    properties = {UNIQ_KEY: "u", KEYS: "k", TAGS: "t"}
    message = record.encode(physical_offset=1, topic="T", body=b"warm up", properties=properties)
    # The search for a record after a byte that starts no record is a kernel of its own.
    log = MemoryFile(b"?" + message)
    for batch in SegmentScan(log, 0, 0, log.size, exact=True):
        queue_entries.group(batch)
        kernel.load().first_torn(batch.buffer, batch.base, batch.records)
        if export:
            _export(batch)
        _index(batch)
    if live:
        _append()
        _read(message)


def _append() -> None:
    kernels = kernel.load()
    drafts = encode.draft_batch(b"", kernels)
    assert drafts is not None
    routes = encode.make_routes([], [bytes(V4_SIZE)])
    encode.write_records(
        np.empty(0, np.uint8), 0, 0, 0, drafts, 0, routes, 0, kernels, append_crc=True
    )
    kernels.properties_with_crc(drafts.texts, drafts.rows)
    puts.load_messages()
    digest.load_digester(np.zeros(1, np.int64), index_tags=True)


def _read(message: bytes) -> None:
    entry = consume_queue.encode(QueueEntry(0, len(message), 0))
    buffer, entries = (np.frombuffer(data, np.uint8) for data in (message, entry))
    rows, kernels = np.zeros((4, 1), np.int64), kernel.load()
    part, limits = queue_read.LogPart(buffer, 0, 0, len(message)), queue_read.ReadLimits(0, 0, 1, 1)
    kernels.follow(entries, 0, part, queue_read.wanted("T", 0), limits, rows)
    rows[queue_read.SIZE] = len(message)
    decode.decode(buffer, rows[queue_read.AT], rows[queue_read.SIZE], kernels)
    kernels.copy_records(
        np.empty(len(message), np.uint8), buffer, rows[queue_read.AT], rows[queue_read.SIZE]
    )
    found, _ = adjacent.find_records(message)
    adjacent.located(message + adjacent.PADDING, found[adjacent.AT])
    kernels.message_columns(
        buffer, rows[queue_read.AT], rows[queue_read.SIZE], np.frombuffer(bytes(2000), np.uint8), 0
    )


def _export(batch: Batch) -> None:
    try:
        from mqlake.dispatch.arrow import to_arrow
    except ImportError:  # Without pyarrow nothing is exported.
        return
    to_arrow(batch)


def _index(batch: Batch) -> None:
    owners = batch.keys["record"]
    builder = index_entries.IndexFileBuilder(slots=4, max_entries=8)
    builder.insert(
        batch.keys["hash"],
        batch.records["physical_offset"][owners],
        batch.records["store_timestamp"][owners],
    )
    file = bytes(builder.finish())
    builder.close()
    hashes = np.ascontiguousarray(batch.keys["hash"])
    index_entries.lookup_many(
        buffer=file, slots=4, max_entries=8, hashes=hashes, begin=0, end=0, limit=1
    )
    index_entries.relink(file, 4, builder.header.index_count)


if __name__ == "__main__":
    load()
