"""Write records as MessagePack (`mqlake.dispatch.decode`).

Numbers keep their width and byte order: records and MessagePack are both big-endian.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.hosts import LONGEST_HOST, put_host
from mqlake.dispatch.compiled.properties import separators
from mqlake.dispatch.compiled.record import is_safe_topic, lay_out
from mqlake.formats import host, record, sys_flag
from mqlake.formats.record import Fault
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import (
    BLOCK,
    borrow,
    copy,
    load_i32,
    load_i64,
    lowest_bit,
    store_i32,
    store_i64,
    store_u8,
)
from mqlake.kernels.utf8 import is_valid
from mqlake.kernels.values import in_blocks

_GOOD = int(Fault.GOOD)
_FIELDS = len(record.Record.__struct_fields__)
_BORN_HOST_V6, _STORE_HOST_V6 = sys_flag.BORN_HOST_V6, sys_flag.STORE_HOST_V6
_V4_SIZE, _V6_SIZE = host.V4_SIZE, host.V6_SIZE
_BODY_CRC_AT, _QUEUE_ID_AT, _FLAG_AT = record.BODY_CRC_AT, record.QUEUE_ID_AT, record.FLAG_AT
_QUEUE_OFFSET_AT, _PHYSICAL_OFFSET_AT = record.QUEUE_OFFSET_AT, record.PHYSICAL_OFFSET_AT
_SYS_FLAG_AT, _BORN_TIMESTAMP_AT = record.SYS_FLAG_AT, record.BORN_TIMESTAMP_AT
_BORN_HOST_AT, _MIN_SIZE = record.BORN_HOST_AT, record.MIN_SIZE

# MessagePack: the first byte of each value.
_ARRAY_16, _ARRAY_32, _MAP_32 = 0xDC, 0xDD, 0xDF
_INT_32, _INT_64, _STR_32, _BIN_32 = 0xD2, 0xD3, 0xDB, 0xC6
_HEAD_SIZE = 5
"""Bytes before the content of a text, an array or a map of 32-bit length."""
_LEAST_PAIR = 4
_MOST_OVERHEAD = 3 + 9 * _FIELDS + 2 * LONGEST_HOST
"""Bytes that a record takes beyond its own size, without the heads of its pairs."""


@inlined
def _put_i32(out, to, number):
    store_u8(out, to, _INT_32)
    store_i32(out, to + 1, number)
    return to + 5


@inlined
def _put_i64(out, to, number):
    store_u8(out, to, _INT_64)
    store_i64(out, to + 1, number)
    return to + 9


@inlined
def _put_head(out, to, kind, length):
    store_u8(out, to, kind)
    store_i32(out, to + 1, length)
    return to + _HEAD_SIZE


@inlined
def _put_bytes(out, to, kind, data, at, length):
    to = _put_head(out, to, kind, length)
    copy(out, to, data, at, length)
    return to + length


@inlined
def _put_host(out, to, data, at, is_v6):
    end = put_host(out, to + _HEAD_SIZE, data, at, is_v6)
    _put_head(out, to, _STR_32, end - to - _HEAD_SIZE)
    return end


@inlined
def _put_properties(out, to, data, start, end):
    """Write all pairs; of pairs with equal names, readers keep the last."""
    head, count = to, 0
    to += _HEAD_SIZE
    name_at, name_end = start, -1
    for block in range(start, end + 1, BLOCK):
        name_ends, ends = separators(data, block, end)
        bits = name_ends | ends
        while bits != 0:
            bit = bits & (~bits + np.uint64(1))
            here = block + lowest_bit(bits)
            bits ^= bit
            if ends & bit == 0:
                if name_end < 0:
                    name_end = here
                continue
            if name_end > name_at and here > name_end + 1:
                to = _put_bytes(out, to, _STR_32, data, name_at, name_end - name_at)
                to = _put_bytes(out, to, _STR_32, data, name_end + 1, here - name_end - 1)
                count += 1
            name_at, name_end = here + 1, -1
    _put_head(out, head, _MAP_32, count)
    return to


@kernel
def packed(buffer, at, sizes):
    """Return an array of records, each an array of fields; empty if some cannot be decoded."""
    buffer = borrow(buffer)
    count = len(at)
    data, starts = in_blocks(buffer, at, sizes)
    most = np.int64(_HEAD_SIZE)
    for row in range(count):
        pairs = sizes[row] // _LEAST_PAIR + 1
        most += sizes[row] + _MOST_OVERHEAD + pairs * 2 * _HEAD_SIZE
    out = np.empty(most, np.uint8)
    to = _put_head(out, 0, _ARRAY_32, count)
    for row in range(count):
        start, size = starts[row], np.int64(sizes[row])
        if size < _MIN_SIZE or load_i32(data, start) != size:
            return out[:0]
        fault, body_at, body_length, topic_at, topic_length, properties_at, properties_length = (
            lay_out(data, start)
        )
        end = properties_at + properties_length
        if (
            fault != _GOOD
            or not is_safe_topic(data, topic_at, topic_length)
            or not is_valid(data, properties_at, end)
        ):
            return out[:0]
        flags = load_i32(data, start + _SYS_FLAG_AT)
        born_v6, store_v6 = flags & _BORN_HOST_V6 != 0, flags & _STORE_HOST_V6 != 0
        stored_at = start + _BORN_HOST_AT + (_V6_SIZE if born_v6 else _V4_SIZE)
        host_end = stored_at + 8 + (_V6_SIZE if store_v6 else _V4_SIZE)
        store_u8(out, to, _ARRAY_16)
        store_u8(out, to + 1, 0)
        store_u8(out, to + 2, _FIELDS)
        to += 3
        to = _put_bytes(out, to, _STR_32, data, topic_at, topic_length)
        to = _put_i32(out, to, load_i32(data, start + _QUEUE_ID_AT))
        to = _put_i64(out, to, load_i64(data, start + _QUEUE_OFFSET_AT))
        to = _put_i64(out, to, load_i64(data, start + _PHYSICAL_OFFSET_AT))
        to = _put_i32(out, to, size)
        to = _put_i32(out, to, load_i32(data, start + _BODY_CRC_AT))
        to = _put_i32(out, to, load_i32(data, start + _FLAG_AT))
        to = _put_i32(out, to, flags)
        to = _put_i64(out, to, load_i64(data, start + _BORN_TIMESTAMP_AT))
        to = _put_host(out, to, data, start + _BORN_HOST_AT, born_v6)
        to = _put_i64(out, to, load_i64(data, stored_at))
        to = _put_host(out, to, data, stored_at + 8, store_v6)
        to = _put_i32(out, to, load_i32(data, host_end))
        to = _put_i64(out, to, load_i64(data, host_end + 4))
        to = _put_properties(out, to, data, properties_at, end)
        to = _put_bytes(out, to, _BIN_32, data, body_at, body_length)
    return out[:to]
