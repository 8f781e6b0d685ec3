"""A few records at any positions, as one Arrow batch (docs/dispatch.md).

`mqlake.dispatch.arrow` makes a call and an array for each column. For a consumer's 32 messages
this takes ten times as long as copying the values. Here one kernel writes all buffers one after
another, as in the message of an Arrow stream, and pyarrow reads that message without a copy. Only
the message's head is filled in here: apart from lengths and positions it is the same for every
batch.
"""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import struct
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mqlake.dispatch.arrow import SCHEMA
from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.kernel import Kernel, load
from mqlake.formats import message_json, record

_PREFIX = 8
"""Bytes before the head: a continuation marker, and the head's length."""

# Flatbuffers, Arrow's Message.fbs: fields of Message, and of RecordBatch.
_HEADER, _BODY_LENGTH = 2, 3
_ROWS, _NODES, _BUFFERS = 0, 1, 2
_LONG = struct.Struct("<q")


def to_arrow(buffer: Bytes, at: Longs, sizes: Longs, kernel: Kernel | None = None) -> Any:
    """Return records as a `pyarrow.RecordBatch` of `arrow.SCHEMA`; the values are copies.

    Args:
        buffer: the bytes that contain the records, which must be valid.
        at: their positions in the buffer.
        sizes: their sizes in bytes.
    """
    head = _head()
    found = (kernel or load()).message_columns(buffer, at, sizes, head.template, head.spans_at)
    if not len(found.data):
        return _slowly(buffer, at, sizes)
    data = found.data.data
    counts = _counts(found.rows, found.untagged, found.pairs, found.keys)
    data[head.counts_at : head.counts_at + len(counts)] = counts
    _LONG.pack_into(data, head.rows_at, found.rows)
    _LONG.pack_into(data, head.body_length_at, len(data) - len(head.template))
    return pa.ipc.read_record_batch(pa.py_buffer(found.data), SCHEMA)


def _node_numbers() -> dict[str, int]:
    """Return the number of each column's array, counted with the arrays inside other arrays."""
    numbers: dict[str, int] = {}
    number = 0
    for field in SCHEMA:
        numbers[field.name] = number
        number += 1 + _inner(field.type)
    return numbers


def _inner(kind: pa.DataType) -> int:
    if pa.types.is_map(kind):
        return 3  # entries, name, value
    return 1 if pa.types.is_list(kind) else 0


_NODE = _node_numbers()
_ENTRIES, _NAME, _VALUE = (_NODE["properties"] + place for place in (1, 2, 3))
_TAGS, _KEY = _NODE["tags"], _NODE["keys"] + 1


class _MessageTemplate(NamedTuple):
    """The bytes before the columns, and the positions in them of what differs between batches."""

    template: Bytes
    arrays: int
    counts_at: int
    """For each array: the number of values, and of nulls among them."""
    spans_at: int
    """For each buffer: its position after the head, and its length."""
    rows_at: int
    body_length_at: int


@cache
def _head() -> _MessageTemplate:
    """Return the head of a batch that pyarrow has written.

    The batch has a row and a body, because flatbuffers leave out fields that are 0.
    """
    kinds = [field.type for field in SCHEMA]
    blank = [pa.array([_example(kind)], kind) for kind in kinds]
    written = pa.RecordBatch.from_arrays(blank, schema=SCHEMA).serialize()
    data = memoryview(written)
    end = _PREFIX + struct.unpack_from("<i", data, 4)[0]
    message = _pointed(data, _PREFIX)
    batch = _pointed(data, _field(data, message, _HEADER))
    nodes = _pointed(data, _field(data, batch, _NODES))
    buffers = _pointed(data, _field(data, batch, _BUFFERS))
    (arrays,) = struct.unpack_from("<I", data, nodes)
    return _MessageTemplate(
        np.frombuffer(bytes(data[:end]), np.uint8),
        arrays,
        nodes + 4,
        buffers + 4,
        _field(data, batch, _ROWS),
        _field(data, message, _BODY_LENGTH),
    )


@lru_cache
def _counts(rows: int, untagged: int, pairs: int, keys: int) -> bytes:
    counts = [rows, 0] * _head().arrays
    for array, count in ((_ENTRIES, pairs), (_NAME, pairs), (_VALUE, pairs), (_KEY, keys)):
        counts[2 * array] = count
    counts[2 * _TAGS + 1] = untagged
    return struct.pack(f"<{len(counts)}q", *counts)


def _example(kind: pa.DataType) -> Any:
    if _inner(kind):
        return []
    return 0 if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) else b""


def _pointed(data: memoryview, at: int) -> int:
    return at + struct.unpack_from("<I", data, at)[0]


def _field(data: memoryview, table: int, number: int) -> int:
    """Return the position of a field of a flatbuffer's table."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    return table + struct.unpack_from("<H", data, fields + 4 + 2 * number)[0]


def _slowly(buffer: Bytes, at: Longs, sizes: Longs) -> Any:
    """Return records with text that is not UTF-8, replaced as in Java."""
    rows: list[dict[str, Any]] = []
    for start, size in zip(at.tolist(), sizes.tolist(), strict=True):
        one = record.decode(buffer[start : start + size].tobytes(), crc=False)
        values = message_json.to_json(one)
        pairs = list(one.properties.items())
        more = {"body": one.body, "properties": pairs, "tags": one.tags, "keys": one.keys}
        rows.append(values | more)
    return pa.RecordBatch.from_pylist(rows, SCHEMA)
