"""A batch of records as Arrow columns (docs/dispatch.md).

Columns have the names of the JSON form (`mqlake.formats.message_json`). The values are copied out
of the window, each column at once. Text is always valid UTF-8: what is malformed is replaced as
Java replaces it.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mqlake.dispatch.batch import Batch, Bytes, Flags, Ints, Longs
from mqlake.dispatch.kernel import Kernel, load
from mqlake.errors import MqlakeError
from mqlake.formats import host, java_string, properties, record, sys_flag

_TIME = pa.timestamp("ms", tz="UTC")

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("queueId", pa.int32(), nullable=False),
        pa.field("queueOffset", pa.int64(), nullable=False),
        pa.field("physicalOffset", pa.int64(), nullable=False),
        pa.field("size", pa.int32(), nullable=False),
        pa.field("bodyCrc", pa.int32(), nullable=False),
        pa.field("sysFlag", pa.int32(), nullable=False),
        pa.field("flag", pa.int32(), nullable=False),
        pa.field("bornTimestamp", _TIME, nullable=False),
        pa.field("storeTimestamp", _TIME, nullable=False),
        pa.field("bornHost", pa.string(), nullable=False),
        pa.field("storeHost", pa.string(), nullable=False),
        pa.field("reconsumeTimes", pa.int32(), nullable=False),
        pa.field("preparedTransactionOffset", pa.int64(), nullable=False),
        pa.field("properties", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field("tags", pa.string()),
        pa.field("keys", pa.list_(pa.string()), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
        pa.field("msgId", pa.string(), nullable=False),
    ]
)
"""All columns, in their order. `tags` is null where there are none; `keys` are those of KEYS."""

COLUMNS: tuple[str, ...] = tuple(SCHEMA.names)

FIELDS: dict[str, Any] = {field.name: field for field in SCHEMA} | {
    "uniqKey": pa.field("uniqKey", pa.string())
}
"""All columns that can be asked for: the unique key, null where there is none, only by its name."""


def to_arrow(
    batch: Batch, columns: Sequence[str] = COLUMNS, kernel: Kernel | None = None
) -> Any:  # pyarrow carries no types
    """Return the chosen columns of a batch as a `pyarrow.RecordBatch`.

    The batch was scanned with `Want.EXPORT` or `DISPATCH`. The columns are copies: they stay valid
    when the scan goes on.

    Raises:
        MqlakeError: there is no such column.
    """
    if unknown := [name for name in columns if name not in FIELDS]:
        raise MqlakeError(f"no column {unknown[0]!r}; there are {', '.join(FIELDS)}")
    values = _Values(batch, kernel or load())
    return pa.RecordBatch.from_arrays(
        [_ARRAYS[name](values) for name in columns],
        schema=pa.schema([FIELDS[name] for name in columns]),
    )


class _Values:
    """The values of one batch, as Arrow arrays."""

    def __init__(self, batch: Batch, kernel: Kernel) -> None:
        self._kernel, self._buffer, self._records = kernel, batch.buffer, batch.records
        self._start: Longs = batch.records["physical_offset"] - batch.base
        self._born_v6: Flags = (batch.records["sys_flag"] & sys_flag.BORN_HOST_V6) != 0
        self._store_v6: Flags = (batch.records["sys_flag"] & sys_flag.STORE_HOST_V6) != 0

    def row(self, column: str) -> Any:
        """Return a copy of a column that the scan has filled, and will fill again."""
        return self._records[column].copy()

    def i32(self, column: str) -> pa.Array:
        return _fixed(pa.int32(), self.row(column))

    def i64(self, column: str) -> pa.Array:
        return _fixed(pa.int64(), self.row(column))

    def time(self, column: str) -> pa.Array:
        return _fixed(_TIME, self.row(column))

    def head_i32(self, at: int) -> pa.Array:
        return _fixed(pa.int32(), self._kernel.gather_i32(self._buffer, self._start + at))

    def born_timestamp(self) -> pa.Array:
        at = self._start + record.BORN_TIMESTAMP_AT
        return _fixed(_TIME, self._kernel.gather_i64(self._buffer, at))

    def reconsume_times(self) -> pa.Array:
        at = self._store_host_at() + self._host_size(self._store_v6)
        return _fixed(pa.int32(), self._kernel.gather_i32(self._buffer, at))

    def prepared_transaction_offset(self) -> pa.Array:
        at = self._store_host_at() + self._host_size(self._store_v6) + 4
        return _fixed(pa.int64(), self._kernel.gather_i64(self._buffer, at))

    def born_host(self) -> pa.Array:
        at = self._start + record.BORN_HOST_AT
        return _variable(pa.string(), self._kernel.host_texts(self._buffer, at, self._born_v6))

    def store_host(self) -> pa.Array:
        at = self._store_host_at()
        return _variable(pa.string(), self._kernel.host_texts(self._buffer, at, self._store_v6))

    def message_id(self) -> pa.Array:
        texts = self._kernel.message_ids(
            self._buffer,
            self._store_host_at(),
            self._store_v6,
            self._start + record.PHYSICAL_OFFSET_AT,
        )
        return _variable(pa.string(), texts)

    def body(self) -> pa.Array:
        at, lengths = self._spans("body")
        return _variable(pa.binary(), self._kernel.copy_spans(self._buffer, at, lengths))

    def topic(self) -> pa.Array:
        return self._text(*self._spans("topic"))

    def tags(self) -> pa.Array:
        return self._property("tags")

    def unique_key(self) -> pa.Array:
        return self._property("unique_key")

    def keys(self) -> pa.Array:
        starts, at, lengths = self._kernel.key_spans(self._buffer, *self._spans("keys"))
        return pa.ListArray.from_arrays(_fixed(pa.int32(), starts), self._text(at, lengths))

    def properties(self) -> pa.Array:
        at, lengths = self._spans("properties")
        if not self._kernel.are_text(self._buffer, at, lengths):
            # Names that differ in bytes may be the same text: only the slow way knows.
            pairs = [
                list(properties.decode_properties(data).items())
                for data in self._stretches(at, lengths)
            ]
            return pa.array(pairs, SCHEMA.field("properties").type)
        spans = self._kernel.property_spans(self._buffer, at, lengths)
        starts, name_at, name_lengths, value_at, value_lengths = spans
        names = self._kernel.copy_spans(self._buffer, name_at, name_lengths)
        values = self._kernel.copy_spans(self._buffer, value_at, value_lengths)
        return pa.MapArray.from_arrays(
            _fixed(pa.int32(), starts),
            _variable(pa.string(), names),
            _variable(pa.string(), values),
        )

    def _property(self, column: str) -> pa.Array:
        at, lengths = self._spans(column)
        return self._text(at, lengths, present=lengths > 0)

    def _text(self, at: Longs, lengths: Ints, present: Flags | None = None) -> pa.Array:
        if self._kernel.are_text(self._buffer, at, lengths):
            texts = self._kernel.copy_spans(self._buffer, at, lengths)
            return _variable(pa.string(), texts, present)
        decoded = [java_string.decode(data) for data in self._stretches(at, lengths)]
        return pa.array(decoded, pa.string(), mask=None if present is None else ~present)

    def _spans(self, column: str) -> tuple[Longs, Ints]:
        at: Longs = self._records[f"{column}_at"].astype(np.int64)
        return at, self.row(f"{column}_length")

    def _stretches(self, at: Longs, lengths: Ints) -> list[bytes]:
        spans = zip(at.tolist(), lengths.tolist(), strict=True)
        return [self._buffer[start : start + length].tobytes() for start, length in spans]

    def _host_size(self, is_v6: Flags) -> Longs:
        return np.where(is_v6, host.V6_SIZE, host.V4_SIZE)

    def _store_host_at(self) -> Longs:
        return self._start + record.BORN_HOST_AT + self._host_size(self._born_v6) + 8


def _fixed(kind: pa.DataType, values: Any) -> pa.Array:
    """Return values of a fixed width. `pa.array` would import pandas, which takes a second."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _variable(
    kind: pa.DataType, texts: tuple[Ints, Bytes], present: Flags | None = None
) -> pa.Array:
    offsets, data = texts
    buffers = [
        None if present is None else pa.py_buffer(np.packbits(present, bitorder="little")),
        pa.py_buffer(offsets),
        pa.py_buffer(data),
    ]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


_ARRAYS: dict[str, Callable[[_Values], pa.Array]] = {
    "topic": _Values.topic,
    "queueId": lambda values: values.i32("queue_id"),
    "queueOffset": lambda values: values.i64("queue_offset"),
    "physicalOffset": lambda values: values.i64("physical_offset"),
    "size": lambda values: values.i32("size"),
    "bodyCrc": lambda values: values.head_i32(record.BODY_CRC_AT),
    "sysFlag": lambda values: values.i32("sys_flag"),
    "flag": lambda values: values.head_i32(record.FLAG_AT),
    "bornTimestamp": _Values.born_timestamp,
    "storeTimestamp": lambda values: values.time("store_timestamp"),
    "bornHost": _Values.born_host,
    "storeHost": _Values.store_host,
    "reconsumeTimes": _Values.reconsume_times,
    "preparedTransactionOffset": _Values.prepared_transaction_offset,
    "properties": _Values.properties,
    "tags": _Values.tags,
    "keys": _Values.keys,
    "body": _Values.body,
    "msgId": _Values.message_id,
    "uniqKey": _Values.unique_key,
}
