"""A batch of records as Arrow columns (docs/dispatch.md).

Columns have the names of the JSON form (`mqlake.formats.message_json`). One kernel copies the
values of all chosen columns out of the window. Text is always valid UTF-8: malformed bytes are
replaced as Java replaces them.
"""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from mqlake.dispatch.batch import Batch
from mqlake.dispatch.kernel import Kernel, load
from mqlake.dispatch.value_columns import (
    BITS,
    INTS,
    LONGS,
    MILLISECONDS,
    TEXTS,
    OptionalTexts,
    Times,
    Values,
)
from mqlake.errors import MqlakeError
from mqlake.formats import properties

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
"""All columns, in order. `tags` is null for a message without tags; `keys` are those of KEYS."""

COLUMNS: tuple[str, ...] = tuple(SCHEMA.names)

FIELDS: dict[str, Any] = {field.name: field for field in SCHEMA} | {
    "uniqKey": pa.field("uniqKey", pa.string())
}
"""All columns that may be requested: also the unique key (null if missing), only by its name."""


def to_arrow(
    batch: Batch,
    columns: Sequence[str] = COLUMNS,
    kernel: Kernel | None = None,
    times: Times = MILLISECONDS,
) -> Any:  # pyarrow has no types
    """Return the chosen columns of a batch as a `pyarrow.RecordBatch`.

    The columns are copies: they stay valid when the scan continues.

    Args:
        times: the unit of time columns, and the range to which they are limited.

    Raises:
        MqlakeError: there is no such column.
    """
    if unknown := [name for name in columns if name not in FIELDS]:
        raise MqlakeError(f"there is no column {unknown[0]!r}; the columns are {', '.join(FIELDS)}")
    chosen = sum(BITS[name] for name in frozenset(columns))
    values = (kernel or load()).values(batch, chosen, times)
    arrays = _arrays(batch, chosen, values, pa.timestamp(times.unit, tz="UTC"))
    return pa.RecordBatch.from_arrays(
        [arrays[name] for name in columns], schema=_schema(tuple(columns), times.unit)
    )


@lru_cache
def _schema(columns: tuple[str, ...], unit: str) -> pa.Schema:
    fields = (FIELDS[name] for name in columns)
    time = pa.timestamp(unit, tz="UTC")
    return pa.schema([one.with_type(time) if one.type == _TIME else one for one in fields])


def _arrays(batch: Batch, chosen: int, values: Values, time: Any) -> dict[str, pa.Array]:
    """Return the chosen columns by name."""
    kinds = {"bornTimestamp": time, "storeTimestamp": time}
    ints = (name for name in INTS if chosen & BITS[name])
    longs = (name for name in LONGS if chosen & BITS[name])
    arrays = {name: _fixed(pa.int32(), values.ints[row]) for row, name in enumerate(ints)}
    for row, name in enumerate(longs):
        arrays[name] = _fixed(kinds.get(name, pa.int64()), values.longs[row])
    for name, texts in zip(TEXTS, values.texts, strict=True):
        if chosen & BITS[name]:
            # A scan yields no record whose topic is not valid text.
            arrays[name] = _variable(FIELDS[name].type, texts)
    of_properties = _of_properties(values) if values.are_text else _slowly(batch)
    return arrays | {name: make() for name, make in of_properties.items() if chosen & BITS[name]}


def _of_properties(values: Values) -> dict[str, Callable[[], pa.Array]]:
    keys, pairs = values.keys, values.properties
    return {
        "tags": lambda: _optional(values.tags),
        "uniqKey": lambda: _optional(values.unique_keys),
        "keys": lambda: pa.ListArray.from_arrays(
            _fixed(pa.int32(), keys.starts), _variable(pa.string(), keys[1:])
        ),
        "properties": lambda: pa.MapArray.from_arrays(
            _fixed(pa.int32(), pairs.starts),
            _variable(pa.string(), (pairs.name_offsets, pairs.names)),
            _variable(pa.string(), (pairs.value_offsets, pairs.values)),
        ),
    }


def _slowly(batch: Batch) -> dict[str, Callable[[], pa.Array]]:
    """Return the same for a batch with properties that are not valid UTF-8.

    Names that differ in bytes may decode to the same text.
    """
    spans = zip(
        batch.records["properties_at"].tolist(),
        batch.records["properties_length"].tolist(),
        strict=True,
    )
    found = [
        properties.decode_properties(batch.buffer[at : at + length].tobytes())
        for at, length in spans
    ]
    tags = [one.get(properties.TAGS) for one in found]
    unique_keys = [one.get(properties.UNIQ_KEY) for one in found]
    keys = [properties.key_list(one) for one in found]
    pairs = [list(one.items()) for one in found]
    return {
        "tags": lambda: pa.array(tags, pa.string()),
        "uniqKey": lambda: pa.array(unique_keys, pa.string()),
        "keys": lambda: pa.array(keys, SCHEMA.field("keys").type),
        "properties": lambda: pa.array(pairs, SCHEMA.field("properties").type),
    }


def _fixed(kind: pa.DataType, values: Any) -> pa.Array:
    """Return fixed-width values as an array. `pa.array` imports pandas, which takes a second."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _variable(kind: pa.DataType, texts: Sequence[Any]) -> pa.Array:
    offsets, data = texts
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def _optional(texts: OptionalTexts) -> pa.Array:
    present = pa.py_buffer(texts.present) if texts.nulls else None
    buffers = [present, pa.py_buffer(texts.offsets), pa.py_buffer(texts.data)]
    return pa.Array.from_buffers(pa.string(), len(texts.offsets) - 1, buffers, texts.nulls)
