"""A batch of records as Arrow columns (docs/dispatch.md).

Columns have the names of the JSON form (`mqlake.formats.message_json`). The values are copied out
of the window, each column at once. Text is always valid UTF-8: what is malformed is replaced as
Java replaces it.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from mqlake.dispatch.answers import Heads
from mqlake.dispatch.batch import Batch, Bytes, Flags, Ints, Longs
from mqlake.dispatch.kernel import Kernel, load
from mqlake.errors import MqlakeError
from mqlake.formats import java_string, properties, record

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
        self._kernel, self._batch = kernel, batch
        self._buffer, self._records = batch.buffer, batch.records

    @cached_property
    def heads(self) -> Heads:
        """What the scan has not taken from the records' heads."""
        return self._kernel.heads(self._batch)

    def i32(self, column: str) -> pa.Array:
        return _fixed(pa.int32(), self._row(column))

    def i64(self, column: str) -> pa.Array:
        return _fixed(pa.int64(), self._row(column))

    def time(self, column: str) -> pa.Array:
        return _fixed(_TIME, self._row(column))

    def born_host(self) -> pa.Array:
        at, is_v6 = self.heads.born_host_at, self.heads.born_v6
        return _variable(pa.string(), self._kernel.host_texts(self._buffer, at, is_v6))

    def store_host(self) -> pa.Array:
        at, is_v6 = self.heads.store_host_at, self.heads.store_v6
        return _variable(pa.string(), self._kernel.host_texts(self._buffer, at, is_v6))

    def message_id(self) -> pa.Array:
        start = self._records["physical_offset"] - self._batch.base
        texts = self._kernel.message_ids(
            self._buffer,
            self.heads.store_host_at,
            self.heads.store_v6,
            start + record.PHYSICAL_OFFSET_AT,
        )
        return _variable(pa.string(), texts)

    def body(self) -> pa.Array:
        return _variable(pa.binary(), self._copies("body"))

    def topic(self) -> pa.Array:
        # A scan takes no record whose topic is not text.
        return _variable(pa.string(), self._copies("topic"))

    def tags(self) -> pa.Array:
        return self._property("tags")

    def unique_key(self) -> pa.Array:
        return self._property("unique_key")

    def keys(self) -> pa.Array:
        if not self._are_text:
            texts = map(java_string.decode, self._stretches("keys"))
            keys = [list(filter(None, text.split(properties.KEY_SEPARATOR))) for text in texts]
            return pa.array(keys, SCHEMA.field("keys").type)
        starts, *texts = self._kernel.key_texts(self._buffer, *self._spans("keys"))
        return pa.ListArray.from_arrays(_fixed(pa.int32(), starts), _variable(pa.string(), texts))

    def properties(self) -> pa.Array:
        if not self._are_text:
            # Names that differ in bytes may be the same text: only the slow way knows.
            stretches = self._stretches("properties")
            pairs = [list(properties.decode_properties(data).items()) for data in stretches]
            return pa.array(pairs, SCHEMA.field("properties").type)
        found = self._kernel.property_texts(self._buffer, *self._spans("properties"))
        return pa.MapArray.from_arrays(
            _fixed(pa.int32(), found[0]),
            _variable(pa.string(), found[1:3]),
            _variable(pa.string(), found[3:]),
        )

    @cached_property
    def _are_text(self) -> bool:
        """Whether all properties are well-formed, and so all that is cut out of them at ASCII."""
        return self._kernel.are_text(self._buffer, *self._spans("properties"))

    def _property(self, column: str) -> pa.Array:
        at, lengths = self._spans(column)
        present = lengths > 0
        if self._are_text:
            texts = self._kernel.copy_spans(self._buffer, at, lengths)
            return _variable(pa.string(), texts, present)
        decoded = [java_string.decode(data) for data in self._stretches(column)]
        return pa.array(decoded, pa.string(), mask=~present)

    def _row(self, column: str) -> Any:
        """Return a copy of a column that the scan has filled, and will fill again."""
        return self._records[column].copy()

    def _copies(self, column: str) -> tuple[Ints, Bytes]:
        return self._kernel.copy_spans(self._buffer, *self._spans(column))

    def _spans(self, column: str) -> tuple[Longs, Ints]:
        at: Longs = self._records[f"{column}_at"].astype(np.int64)
        return at, self._row(f"{column}_length")

    def _stretches(self, column: str) -> list[bytes]:
        at, lengths = self._spans(column)
        spans = zip(at.tolist(), lengths.tolist(), strict=True)
        return [self._buffer[start : start + length].tobytes() for start, length in spans]


def _fixed(kind: pa.DataType, values: Any) -> pa.Array:
    """Return values of a fixed width. `pa.array` would import pandas, which takes a second."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _variable(kind: pa.DataType, texts: Sequence[Any], present: Flags | None = None) -> pa.Array:
    offsets, data = texts
    buffers = [
        None
        if present is None or present.all()
        else pa.py_buffer(np.packbits(present, bitorder="little")),
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
    "bodyCrc": lambda values: _fixed(pa.int32(), values.heads.body_crc),
    "sysFlag": lambda values: values.i32("sys_flag"),
    "flag": lambda values: _fixed(pa.int32(), values.heads.flag),
    "bornTimestamp": lambda values: _fixed(_TIME, values.heads.born_timestamp),
    "storeTimestamp": lambda values: values.time("store_timestamp"),
    "bornHost": _Values.born_host,
    "storeHost": _Values.store_host,
    "reconsumeTimes": lambda values: _fixed(pa.int32(), values.heads.reconsume_times),
    "preparedTransactionOffset": lambda values: _fixed(
        pa.int64(), values.heads.prepared_transaction_offset
    ),
    "properties": _Values.properties,
    "tags": _Values.tags,
    "keys": _Values.keys,
    "body": _Values.body,
    "msgId": _Values.message_id,
    "uniqKey": _Values.unique_key,
}
