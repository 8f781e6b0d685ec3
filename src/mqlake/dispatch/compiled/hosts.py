"""Write hosts and message ids as text (`mqlake.formats.host`, `mqlake.formats.message_id`)."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.formats import host, record, sys_flag
from mqlake.kernels.decimal import put_decimal
from mqlake.kernels.hex import put_hex
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import (
    borrow,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    store_i32,
    store_u8,
)
from mqlake.kernels.values import copy_text, room

LONGEST_HOST = len("[]:") + len("ffff:") * 8 - 1 + len("4294967295")
LONGEST_ID = 2 * (host.V6_SIZE + 8)
_COLON, _OPEN, _CLOSE, _ZERO, _LETTER_A = (ord(character) for character in ":[]0a")
_V4_SIZE, _V6_SIZE = host.V4_SIZE, host.V6_SIZE
_STORE_HOST_V6, _PHYSICAL_OFFSET_AT = sys_flag.STORE_HOST_V6, record.PHYSICAL_OFFSET_AT
_ADDRESS_V4 = host.V4_SIZE - 4
_ADDRESS_V6 = host.V6_SIZE - 4
_WORD = 8
_DOTTED = np.array([int.from_bytes(f"{byte}.".encode().ljust(4)) for byte in range(256)], np.int64)
"""What stands for a byte of an IPv4 address."""


@inlined
def _put_group(data, to, group):
    """Write one group of an IPv6 address, without leading zeros."""
    for shift in (12, 8, 4, 0):
        if group >> shift or shift == 0:
            digit = group >> shift & 0xF
            store_u8(data, to, digit + (_ZERO if digit < 10 else _LETTER_A - 10))
            to += 1
    return to


@inlined
def put_host(data, to, buffer, start, is_v6):
    """Write a host as `mqlake.formats.host.decode_host` does; return the position after it."""
    if is_v6:
        store_u8(data, to, _OPEN)
        to += 1
        for group in range(start, start + _ADDRESS_V6, 2):
            to = _put_group(data, to, load_u16(buffer, group))
            store_u8(data, to, _COLON)
            to += 1
        store_u8(data, to - 1, _CLOSE)
        start += _ADDRESS_V6
    else:
        for place in range(start, start + _ADDRESS_V4):
            byte = load_u8(buffer, place)
            store_i32(data, to, _DOTTED[byte])
            to += 2 + (byte >= 10) + (byte >= 100)
        to -= 1
        start += _ADDRESS_V4
    store_u8(data, to, _COLON)
    return put_decimal(data, to + 1, load_u32(buffer, start))


@inlined
def _is_same_v4(buffer, at, is_v6, other_at, other_is_v6):
    """Return whether two hosts are the same IPv4 host, as those of neighbours often are."""
    return not (is_v6 or other_is_v6) and load_i64(buffer, at) == load_i64(buffer, other_at)


@kernel
def host_texts(buffer, at, is_v6):
    """Return (offsets, data) of hosts as `mqlake.formats.host.decode_host` writes them."""
    buffer = borrow(buffer)
    offsets = np.empty(len(at) + 1, np.int32)
    data = room(len(at) * LONGEST_HOST)
    before = to = np.int64(0)
    offsets[0] = 0
    for row in range(len(at)):
        start = to
        if row > 0 and _is_same_v4(buffer, at[row], is_v6[row], at[row - 1], is_v6[row - 1]):
            to = copy_text(data, to, data, before, to - before)
        else:
            to = put_host(data, to, buffer, at[row], is_v6[row])
        before = start
        offsets[row + 1] = to
    return offsets, data[:to]


@inlined
def put_hosts(buffer, places, distance, records, v6_flag, offsets, data, to):
    """Write the hosts of records, each `distance` bytes after a place; return where they end.

    Args:
        v6_flag: the bit of a record's flags that says that its host is an IPv6 one.
    """
    before, before_at, before_v6 = to, np.int64(0), False
    for row in range(len(records)):
        start, at, is_v6 = to, places[row] + distance, records[row].sys_flag & v6_flag != 0
        if row > 0 and _is_same_v4(buffer, at, is_v6, before_at, before_v6):
            to = copy_text(data, to, data, before, to - before)
        else:
            to = put_host(data, to, buffer, at, is_v6)
        before, before_at, before_v6 = start, at, is_v6
        offsets[row + 1] = to
    return to


@inlined
def _put_message_id(data, to, buffer, host_at, is_v6, offset_at):
    put_hex(data, to, buffer, host_at)
    to += 2 * _V4_SIZE
    if is_v6:
        put_hex(data, to, buffer, host_at + _WORD)
        to += 2 * (_V6_SIZE - _V4_SIZE)
        # The last eight bytes: some of their digits stand there already.
        put_hex(data, to - 2 * _WORD, buffer, host_at + _V6_SIZE - _WORD)
    put_hex(data, to, buffer, offset_at)
    return to + 2 * _WORD


@inlined
def put_message_ids(buffer, starts, stored, records, offsets, data, to):
    """Write the offset message ids of records; return where they end.

    Args:
        starts: the positions of the records.
        stored: those of their store timestamps.
    """
    for row in range(len(records)):
        is_v6 = records[row].sys_flag & _STORE_HOST_V6 != 0
        offset_at = starts[row] + _PHYSICAL_OFFSET_AT
        to = _put_message_id(data, to, buffer, stored[row] + 8, is_v6, offset_at)
        offsets[row + 1] = to
    return to


@kernel
def message_ids(buffer, host_at, is_v6, offset_at):
    """Return (offsets, data) of offset message ids (`mqlake.formats.message_id`)."""
    buffer = borrow(buffer)
    offsets = np.empty(len(host_at) + 1, np.int32)
    data = np.empty(len(host_at) * LONGEST_ID, np.uint8)
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(host_at)):
        start, at = np.int64(host_at[row]), np.int64(offset_at[row])
        to = _put_message_id(data, to, buffer, start, is_v6[row], at)
        offsets[row + 1] = to
    return offsets, data[:to]
