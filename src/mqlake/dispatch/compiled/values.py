"""Gather the values of columns out of records: numbers, stretches of bytes, texts."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.jit import inlined, kernel
from mqlake.dispatch.compiled.memory import (
    BLOCK,
    borrow,
    copy,
    equal_mask,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    lowest_bit,
    store_u8,
)
from mqlake.dispatch.compiled.properties import separators
from mqlake.dispatch.compiled.queues import bytes_hash, equal_bytes
from mqlake.dispatch.compiled.utf8 import first_bytes, is_valid
from mqlake.formats import host, properties

_LEAST_PAIR = 4
"""Bytes of the shortest property: a name, a value, and a separator behind each."""
_FEW = 8
_SPACE = ord(properties.KEY_SEPARATOR)
_DOT, _COLON, _OPEN, _CLOSE, _ZERO = (ord(character) for character in ".:[]0")
LONGEST_HOST = len("[]:") + len("ffff:") * 8 - 1 + len("4294967295")
_HEX_LETTER_A, _HEX_LETTER_SMALL_A = ord("A") - 10, ord("a") - 10
_OFFSET_SIZE = 8
_V4_SIZE, _V6_SIZE = host.V4_SIZE, host.V6_SIZE
_ADDRESS_V4 = host.V4_SIZE - 4
_PORTS_ADDRESS_V6 = host.V6_SIZE - 4


@kernel
def gather_i32(buffer, at):
    values = np.empty(len(at), np.int32)
    for row in range(len(at)):
        values[row] = load_i32(buffer, at[row])
    return values


@kernel
def gather_i64(buffer, at):
    values = np.empty(len(at), np.int64)
    for row in range(len(at)):
        values[row] = load_i64(buffer, at[row])
    return values


@kernel
def copy_spans(buffer, at, lengths):
    """Return (offsets i4[n + 1], data) of stretches, one after the other."""
    buffer = borrow(buffer)
    offsets = np.empty(len(at) + 1, np.int32)
    end = np.int64(0)
    offsets[0] = 0
    for row in range(len(at)):
        end += lengths[row]
        offsets[row + 1] = end
    data = np.empty(end, np.uint8)
    for row in range(len(at)):
        copy(data, np.int64(offsets[row]), buffer, np.int64(at[row]), np.int64(lengths[row]))
    return offsets, data


@inlined
def gathered(buffer, at, sizes):
    """Return stretches, one after the other, with a block of zeros behind; and where each starts.

    For what lies at a mapped file's end, behind which no kernel may load.
    """
    starts = np.empty(len(at), np.int64)
    end = np.int64(0)
    for row in range(len(at)):
        starts[row] = end
        end += sizes[row]
    data = np.empty(end + BLOCK, np.uint8)
    data[end:] = 0
    for row in range(len(at)):
        copy(data, starts[row], buffer, np.int64(at[row]), np.int64(sizes[row]))
    return data, starts


@kernel
def are_text(buffer, at, lengths):
    """Say whether all stretches are well-formed UTF-8."""
    buffer = borrow(buffer)
    for row in range(len(at)):
        start = np.int64(at[row])
        if not is_valid(buffer, start, start + lengths[row]):
            return False
    return True


@inlined
def _put_decimal(data, to, number):
    digits, rest = 1, number // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for place in range(to + digits - 1, to - 1, -1):
        store_u8(data, place, _ZERO + number % 10)
        number //= 10
    return to + digits


@inlined
def _put_digit(data, to, value, letter):
    store_u8(data, to, value + (_ZERO if value < 10 else letter))
    return to + 1


@inlined
def _put_group(data, to, group):
    """Write one group of an IPv6 address, without leading zeros."""
    for shift in (12, 8, 4, 0):
        if group >> shift or shift == 0:
            to = _put_digit(data, to, group >> shift & 0xF, _HEX_LETTER_SMALL_A)
    return to


@inlined
def put_host(data, to, buffer, start, is_v6):
    """Write a host as `mqlake.formats.host.decode_host` does; return the position behind it."""
    if is_v6:
        store_u8(data, to, _OPEN)
        to += 1
        for group in range(start, start + _PORTS_ADDRESS_V6, 2):
            to = _put_group(data, to, load_u16(buffer, group))
            store_u8(data, to, _COLON)
            to += 1
        store_u8(data, to - 1, _CLOSE)
        start += _PORTS_ADDRESS_V6
    else:
        for byte in range(start, start + _ADDRESS_V4):
            to = _put_decimal(data, to, load_u8(buffer, byte))
            store_u8(data, to, _DOT)
            to += 1
        to -= 1
        start += _ADDRESS_V4
    store_u8(data, to, _COLON)
    return _put_decimal(data, to + 1, load_u32(buffer, start))


@inlined
def is_same_v4(buffer, at, is_v6, other_at, other_is_v6):
    """Say whether two hosts are the same IPv4 host, as those of neighbours often are."""
    return not (is_v6 or other_is_v6) and load_i64(buffer, at) == load_i64(buffer, other_at)


@kernel
def host_texts(buffer, at, is_v6):
    """Return (offsets, data) of hosts as `mqlake.formats.host.decode_host` writes them."""
    buffer = borrow(buffer)
    offsets = np.empty(len(at) + 1, np.int32)
    data = np.empty(len(at) * LONGEST_HOST, np.uint8)
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(at)):
        if row > 0 and is_same_v4(buffer, at[row], is_v6[row], at[row - 1], is_v6[row - 1]):
            length = np.int64(offsets[row] - offsets[row - 1])
            copy(data, to, data, np.int64(offsets[row - 1]), length)
            to += length
        else:
            to = put_host(data, to, buffer, at[row], is_v6[row])
        offsets[row + 1] = to
    return offsets, data[:to]


@inlined
def _put_hex(data, to, buffer, start, length):
    for byte in range(start, start + length):
        value = load_u8(buffer, byte)
        to = _put_digit(data, to, value >> 4, _HEX_LETTER_A)
        to = _put_digit(data, to, value & 0xF, _HEX_LETTER_A)
    return to


@kernel
def message_ids(buffer, host_at, is_v6, offset_at):
    """Return (offsets, data) of offset message ids (`mqlake.formats.message_id`)."""
    buffer = borrow(buffer)
    offsets = np.empty(len(host_at) + 1, np.int32)
    data = np.empty(len(host_at) * 2 * (_V6_SIZE + _OFFSET_SIZE), np.uint8)
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(host_at)):
        size = _V6_SIZE if is_v6[row] else _V4_SIZE
        to = _put_hex(data, to, buffer, host_at[row], size)
        to = _put_hex(data, to, buffer, offset_at[row], _OFFSET_SIZE)
        offsets[row + 1] = to
    return offsets, data[:to]


@kernel
def key_spans(buffer, at, lengths):
    """Return (starts i4[n + 1], positions, lengths) of the keys in values of KEYS."""
    buffer = borrow(buffer)
    starts = np.empty(len(at) + 1, np.int32)
    most = np.int64(len(at))
    for row in range(len(at)):
        most += lengths[row] // 2
    key_at, key_length = np.empty(most, np.int64), np.empty(most, np.int32)
    count = 0
    starts[0] = 0
    for row in range(len(at)):
        start = np.int64(at[row])
        end = start + lengths[row]
        for block in range(start, end + 1, BLOCK):
            spaces = first_bytes(equal_mask(buffer, block, _SPACE), end - block)
            if end - block < BLOCK:
                spaces |= np.uint64(1) << np.uint64(end - block)
            while spaces != 0:
                space = block + lowest_bit(spaces)
                spaces &= spaces - np.uint64(1)
                if space > start:
                    key_at[count], key_length[count] = start, space - start
                    count += 1
                start = space + 1
        starts[row + 1] = count
    return starts, key_at[:count], key_length[:count]


@inlined
def _place(
    buffer, name_at, name_length, first, count, pair_at, pair_length, slots, stamps, row, seed
):
    """Return where a pair belongs: the place of an earlier one of the same name, or `count`.

    `slots` is a hash table of the record's pairs; a slot counts if its stamp is this row's. The
    first few pairs are not in it: comparing them all is faster.
    """
    for place in range(first, min(count, first + _FEW)):
        if pair_length[place] == name_length and equal_bytes(
            buffer, name_at, buffer, pair_at[place], name_length
        ):
            return place
    if count < first + _FEW:
        return count
    mask = len(slots) - 1
    slot = np.int64(bytes_hash(buffer, name_at, name_length, seed)) & mask
    while stamps[slot] == row:
        place = first + slots[slot]
        if pair_length[place] == name_length and equal_bytes(
            buffer, name_at, buffer, pair_at[place], name_length
        ):
            return place
        slot = (slot + 1) & mask
    stamps[slot], slots[slot] = row, count - first
    return count


@kernel
def property_spans(buffer, at, lengths, seed):
    """Return (starts i4[n + 1], name positions, lengths, value positions, lengths).

    The pairs that `mqlake.formats.properties.decode_properties` finds, in its order.
    """
    buffer = borrow(buffer)
    starts = np.empty(len(at) + 1, np.int32)
    most, longest = np.int64(len(at)), np.int64(0)
    for row in range(len(at)):
        most += lengths[row] // _LEAST_PAIR
        longest = max(longest, np.int64(lengths[row]))
    name_slots = 2
    while name_slots < 2 * (longest // _LEAST_PAIR + 1):
        name_slots *= 2
    name_at_of, name_length_of = np.empty(most, np.int64), np.empty(most, np.int32)
    value_at_of, value_length_of = np.empty(most, np.int64), np.empty(most, np.int32)
    slots, stamps = np.empty(name_slots, np.int32), np.full(name_slots, -1, np.int32)
    count = 0
    starts[0] = 0
    for row in range(len(at)):
        start = np.int64(at[row])
        end = start + lengths[row]
        first, name_at, name_end = count, start, -1
        for block in range(start, end + 1, BLOCK):
            name_ends, ends = separators(buffer, block, end)
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
                    place = _place(
                        buffer,
                        name_at,
                        name_end - name_at,
                        first,
                        count,
                        name_at_of,
                        name_length_of,
                        slots,
                        stamps,
                        row,
                        seed,
                    )
                    if place == count:
                        count += 1
                        name_at_of[place], name_length_of[place] = name_at, name_end - name_at
                    value_at_of[place], value_length_of[place] = name_end + 1, here - name_end - 1
                name_at, name_end = here + 1, -1
        starts[row + 1] = count
    return (
        starts,
        name_at_of[:count],
        name_length_of[:count],
        value_at_of[:count],
        value_length_of[:count],
    )
