"""Write the texts of which a record may have any number: keys and properties."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.properties import separators
from mqlake.dispatch.compiled.queues import bytes_hash, equal_bytes
from mqlake.formats import properties
from mqlake.kernels.jit import inlined, kernel, outlined
from mqlake.kernels.memory import BLOCK, borrow, equal_mask, load_u8, lowest_bit
from mqlake.kernels.utf8 import first_bytes
from mqlake.kernels.values import copy_text, room

LEAST_PAIR = 4
"""Bytes of the shortest property: a name, a value, and a separator behind each."""
_FEW = 8
_SPACE = ord(properties.KEY_SEPARATOR)
_ONE = np.uint64(1)


@inlined
def put_keys(data, to, offsets, count, buffer, start, length):
    """Write the keys in a value of KEYS; return how many keys and bytes there are now."""
    end = start + length
    for block in range(start, end + 1, BLOCK):
        spaces = first_bytes(equal_mask(buffer, block, _SPACE), end - block)
        if end - block < BLOCK:
            spaces |= _ONE << np.uint64(end - block)
        while spaces != 0:
            space = block + lowest_bit(spaces)
            spaces &= spaces - _ONE
            if space > start:
                to = copy_text(data, to, buffer, start, space - start)
                count += 1
                offsets[count] = to
            start = space + 1
    return count, to


@kernel
def key_texts(buffer, at, lengths):
    """Return (starts i4[n + 1], offsets, data) of the keys in values of KEYS."""
    buffer = borrow(buffer)
    starts = np.empty(len(at) + 1, np.int32)
    total, most = np.int64(0), np.int64(len(at))
    for row in range(len(at)):
        total += lengths[row]
        most += lengths[row] // 2
    offsets, data = np.empty(most + 1, np.int32), room(total)
    count = to = np.int64(0)
    starts[0] = offsets[0] = 0
    for row in range(len(at)):
        count, to = put_keys(
            data, to, offsets, count, buffer, np.int64(at[row]), np.int64(lengths[row])
        )
        starts[row + 1] = count
    return starts, offsets[: count + 1], data[:to]


@inlined
def _mark(buffer, at, end):
    """Return one of 64 bits for a name: names that differ in it are different."""
    first, last = load_u8(buffer, at), load_u8(buffer, end - 1)
    return _ONE << np.uint64((first + 5 * last + 11 * (end - at)) & 63)


@outlined
def _place(buffer, name_at, name_length, count, pairs, slots, stamps, row, seed):
    """Return where a pair belongs: the place of an earlier one of the same name, or `count`.

    `slots` is a hash table of the record's pairs; a slot counts if its stamp is this row's. The
    first few pairs are not in it: comparing them all is faster.
    """
    for place in range(min(count, _FEW)):
        if pairs[place, 1] == name_length and equal_bytes(
            buffer, name_at, buffer, pairs[place, 0], name_length
        ):
            return place
    if count < _FEW:
        return count
    mask = len(slots) - 1
    slot = np.int64(bytes_hash(buffer, name_at, name_length, seed)) & mask
    while stamps[slot] == row:
        place = np.int64(slots[slot])
        if pairs[place, 1] == name_length and equal_bytes(
            buffer, name_at, buffer, pairs[place, 0], name_length
        ):
            return place
        slot = (slot + 1) & mask
    stamps[slot], slots[slot] = row, count
    return count


@inlined
def pairs_room(longest):
    """Return the arrays that `find_pairs` fills for properties of `longest` bytes at most."""
    most, size = longest // LEAST_PAIR + 1, 2
    while size < 2 * most:
        size *= 2
    pairs = np.empty((most, 4), np.int64)
    return pairs, np.empty(size, np.int32), np.full(size, -1, np.int32)


@inlined
def find_pairs(buffer, start, end, pairs, slots, stamps, row, seed):
    """Fill pairs (name at, its length, value at, its length), each name once; return how many."""
    count, marks = np.int64(0), np.uint64(0)
    name_at, name_end = start, np.int64(-1)
    for block in range(start, end + 1, BLOCK):
        name_ends, ends = separators(buffer, block, end)
        bits = name_ends | ends
        while bits != 0:
            bit = bits & (~bits + _ONE)
            here = block + lowest_bit(bits)
            bits ^= bit
            if ends & bit == 0:
                if name_end < 0:
                    name_end = here
                continue
            name_length, value_at = name_end - name_at, name_end + 1
            if name_length > 0 and here > value_at:
                mark = _mark(buffer, name_at, name_end)
                place = count
                if marks & mark != 0 or count >= _FEW:
                    place = _place(
                        buffer, name_at, name_length, count, pairs, slots, stamps, row, seed
                    )
                marks |= mark
                if place == count:
                    count += 1
                    pairs[place, 0], pairs[place, 1] = name_at, name_length
                pairs[place, 2], pairs[place, 3] = value_at, here - value_at
            name_at, name_end = here + 1, np.int64(-1)
    return count


@kernel
def property_texts(buffer, at, lengths, seed):
    """Return (starts i4[n + 1], offsets and data of names, offsets and data of values).

    The pairs that `mqlake.formats.properties.decode_properties` finds, in its order.
    """
    buffer = borrow(buffer)
    starts = np.empty(len(at) + 1, np.int32)
    total, most, longest = np.int64(0), np.int64(0), np.int64(0)
    for row in range(len(at)):
        total += lengths[row]
        most += lengths[row] // LEAST_PAIR + 1
        longest = max(longest, np.int64(lengths[row]))
    pairs, slots, stamps = pairs_room(longest)
    name_offsets, value_offsets = np.empty(most + 1, np.int32), np.empty(most + 1, np.int32)
    names, values = room(total), room(total)
    count = name_to = value_to = np.int64(0)
    starts[0] = name_offsets[0] = value_offsets[0] = 0
    for row in range(len(at)):
        start = np.int64(at[row])
        found = find_pairs(buffer, start, start + lengths[row], pairs, slots, stamps, row, seed)
        for place in range(found):
            name_to = copy_text(names, name_to, buffer, pairs[place, 0], pairs[place, 1])
            value_to = copy_text(values, value_to, buffer, pairs[place, 2], pairs[place, 3])
            count += 1
            name_offsets[count], value_offsets[count] = name_to, value_to
        starts[row + 1] = count
    name_offsets, value_offsets = name_offsets[: count + 1], value_offsets[: count + 1]
    return starts, name_offsets, names[:name_to], value_offsets, values[:value_to]
