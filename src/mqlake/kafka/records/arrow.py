"""Records as Arrow columns, with the names and types of Spark's Kafka source.

Each column is copied out of the scan's buffer in a single call. Text is always valid UTF-8:
malformed bytes are replaced as Java replaces them.
"""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mqlake.formats import java_string
from mqlake.formats.kafka.batch import MAGIC_V0, TIMESTAMP_TYPE
from mqlake.kafka.compiled.headers import header_spans
from mqlake.kafka.records.scan import Records
from mqlake.kernels.values import are_text, copy_spans

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", pa.list_(_HEADER)),
    ]
)
"""All columns, in order. `headers` is null for a record without headers, as in Spark's source."""

_NO_TYPE, _CREATE_TIME, _APPEND_TIME = -1, 0, 1
_LATEST_MS = np.iinfo(np.int64).max // 1000


def to_arrow(
    records: Records, topic: str, partition: int, columns: Sequence[str] = tuple(SCHEMA.names)
) -> Any:  # pyarrow has no types
    """Return the chosen columns of records as a `pyarrow.RecordBatch`.

    They are copies: they stay valid when the scan continues. `timestampType` is -1 for none, 0 for
    CreateTime, 1 for LogAppendTime. A time beyond the range of microseconds becomes the nearest
    one in range.
    """
    made: dict[str, Callable[[], Any]] = {
        "key": lambda: _bytes(records, "key"),
        "value": lambda: _bytes(records, "value"),
        "topic": lambda: pa.repeat(pa.scalar(topic, pa.string()), len(records.rows)),
        "partition": lambda: pa.repeat(pa.scalar(partition, pa.int32()), len(records.rows)),
        "offset": lambda: _fixed(pa.int64(), records.rows["offset"].copy()),
        "timestamp": lambda: _timestamps(records),
        "timestampType": lambda: _fixed(pa.int32(), _types(records)),
        "headers": lambda: _headers(records),
    }
    return pa.RecordBatch.from_arrays(
        [made[name]() for name in columns],
        schema=pa.schema([SCHEMA.field(name) for name in columns]),
    )


def times(records: Records) -> npt.NDArray[np.int64]:
    """Return the times of records as the columns show them, in milliseconds."""
    return np.clip(records.rows["timestamp"], -_LATEST_MS, _LATEST_MS)


def _bytes(records: Records, part: str) -> Any:
    at, lengths = records.rows[f"{part}_at"], records.rows[f"{part}_length"]
    return _nullable(pa.binary(), records.buffer, at.copy(), lengths.copy())


def _timestamps(records: Records) -> Any:
    return _fixed(pa.timestamp("us", tz="UTC"), times(records) * 1000)


def _types(records: Records) -> npt.NDArray[np.int32]:
    attributes, magic = records.batches["attributes"], records.batches["magic"]
    types = np.where(attributes & TIMESTAMP_TYPE != 0, _APPEND_TIME, _CREATE_TIME)
    types[magic == MAGIC_V0] = _NO_TYPE
    return types.astype(np.int32)[records.rows["batch"]]


def _headers(records: Records) -> Any:
    counts = records.rows["header_count"].copy()
    if not counts.any():
        return pa.nulls(len(counts), SCHEMA.field("headers").type)
    at = records.rows["headers_at"].copy()
    name_at, name_lengths, value_at, value_lengths = header_spans(records.buffer, at, counts)
    names = _text(records.buffer, name_at, name_lengths)
    values = _nullable(pa.binary(), records.buffer, value_at, value_lengths)
    pairs = pa.StructArray.from_arrays([names, values], fields=list(_HEADER))
    starts = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=starts[1:])
    buffers = [_validity(counts > 0), pa.py_buffer(starts)]
    kind = SCHEMA.field("headers").type
    return pa.Array.from_buffers(kind, len(counts), buffers, children=[pairs])


def _text(buffer: Any, at: Any, lengths: Any) -> Any:
    if are_text(buffer, at, lengths):
        return _nullable(pa.string(), buffer, at, lengths)
    spans = zip(at.tolist(), lengths.tolist(), strict=True)
    texts = [java_string.decode(buffer[start : start + size].tobytes()) for start, size in spans]
    return pa.array(texts, pa.string())


def _nullable(kind: Any, buffer: Any, at: Any, lengths: Any) -> Any:
    """Return stretches as an array; null if the length is negative."""
    present = lengths >= 0
    offsets, data = copy_spans(buffer, at, np.maximum(lengths, 0))
    buffers = [_validity(present), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(lengths), buffers)


def _validity(present: Any) -> Any:
    return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))


def _fixed(kind: Any, values: Any) -> Any:
    """Return fixed-width values as an array. `pa.array` imports pandas, which takes a second."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
