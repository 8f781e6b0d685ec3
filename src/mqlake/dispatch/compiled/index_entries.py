"""Insert into an index file, look up keys in it, relink it (`mqlake.formats.index_file`)."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.formats.index_file import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import (
    borrow,
    load_i32,
    load_i64,
    prefetch_read,
    prefetch_write,
    store_i32,
    store_i64,
)

_OFFSET_AT, _SECONDS_AT, _PREVIOUS_AT = 4, 4 + 8, 4 + 8 + 4
_MAX_INT = 0x7FFFFFFF
_AHEAD = 32
"""Slots that are prefetched: a power of two, more than the entries processed during a miss."""

_LANES = 24
"""Chains that are walked in parallel."""
_NEW = -1


@inlined
def _doubled(array):
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@inlined
def _slot_at(key_hash, slots):
    # 32-bit division is twice as fast as 64-bit, and neither number is negative.
    return HEADER_SIZE + np.int64(np.uint32(key_hash) % np.uint32(slots)) * SLOT_SIZE


@inlined
def _seconds(begin, timestamp):
    difference = timestamp - begin
    if begin <= 0 or difference < 0:
        return 0
    return min(difference // 1000, _MAX_INT)


@kernel
def insert(buffer, slots, number, begin, hashes, offsets, timestamps):
    """Append entries from `number` on; return how many of them were the first in their slot.

    `begin` is the file's begin timestamp. The slots are spread over more memory than any cache
    holds, so they are prefetched some entries ahead.
    """
    buffer = borrow(buffer)
    ring = np.empty(_AHEAD, np.int64)
    count, used = len(hashes), 0
    for ahead in range(min(_AHEAD, count)):
        ring[ahead] = _slot_at(hashes[ahead], slots)
        prefetch_write(buffer, ring[ahead])
    at = HEADER_SIZE + slots * SLOT_SIZE + number * ENTRY_SIZE
    for row in range(count):
        place = row & _AHEAD - 1
        slot = ring[place]
        if row + _AHEAD < count:
            ring[place] = _slot_at(hashes[row + _AHEAD], slots)
            prefetch_write(buffer, ring[place])
        previous = load_i32(buffer, slot)
        if not 0 < previous <= number:
            previous = 0
            used += 1
        store_i32(buffer, slot, number)
        store_i32(buffer, at, np.int64(hashes[row]))
        store_i64(buffer, at + _OFFSET_AT, offsets[row])
        store_i32(buffer, at + _SECONDS_AT, _seconds(begin, timestamps[row]))
        store_i32(buffer, at + _PREVIOUS_AT, previous)
        number += 1
        at += ENTRY_SIZE
    return used


@kernel
def lookup(buffer, slots, limit, hashes, begin, end, most):
    """Walk the chains of many hashes in parallel, newest entries first.

    Returns (row of `hashes`, physical offset) of each match; rows are in no order. `limit` is
    the number after the file's last entry. While one chain waits for memory, others continue.
    """
    buffer = borrow(buffer)
    rows, offsets, found = np.empty(64, np.int32), np.empty(64, np.int64), 0
    file_begin = load_i64(buffer, 0)
    lanes = min(_LANES, len(hashes))
    row_of, number_of = np.empty(lanes, np.int64), np.empty(lanes, np.int64)
    limit_of, left_of = np.empty(lanes, np.int64), np.empty(lanes, np.int64)
    next_row = 0
    for lane in range(lanes):
        row_of[lane], number_of[lane] = next_row, _NEW
        prefetch_read(buffer, _slot_at(hashes[next_row], slots))
        next_row += 1
    lane = 0
    while lanes > 0:
        row = row_of[lane]
        if number_of[lane] == _NEW:
            number = load_i32(buffer, _slot_at(hashes[row], slots))
            limit_of[lane], left_of[lane] = limit, most
        else:
            number = number_of[lane]
            at = HEADER_SIZE + slots * SLOT_SIZE + number * ENTRY_SIZE
            seconds = load_i32(buffer, at + _SECONDS_AT)
            time = file_begin + seconds * 1000
            if seconds >= 0 and load_i32(buffer, at) == hashes[row] and begin <= time <= end:
                if found == len(rows):
                    rows, offsets = _doubled(rows), _doubled(offsets)
                rows[found], offsets[found] = row, load_i64(buffer, at + _OFFSET_AT)
                found += 1
                left_of[lane] -= 1
            # Links must lead backwards, so that a chain ends. Upstream: selectPhyOffset.
            limit_of[lane] = number if seconds >= 0 and time >= begin else 0
            number = load_i32(buffer, at + _PREVIOUS_AT)
        if 0 < number < limit_of[lane] and left_of[lane] > 0:
            number_of[lane] = number
            prefetch_read(buffer, HEADER_SIZE + slots * SLOT_SIZE + number * ENTRY_SIZE)
            lane += 1
        elif next_row < len(hashes):
            row_of[lane], number_of[lane] = next_row, _NEW
            prefetch_read(buffer, _slot_at(hashes[next_row], slots))
            next_row += 1
            lane += 1
        else:
            lanes -= 1
            row_of[lane], number_of[lane] = row_of[lanes], number_of[lanes]
            limit_of[lane], left_of[lane] = limit_of[lanes], left_of[lanes]
        if lane >= lanes:
            lane = 0
    return rows[:found], offsets[:found]


@kernel
def relink(buffer, slots, count):
    """Link the entries 1 … count-1 again by their hashes, and compare.

    Returns (slots in use, wrong links, first entry with a wrong link, wrong slots, first of them).
    The counts may be 0, and then the first ones are -1.
    """
    heads = np.zeros(slots, np.int32)
    used, wrong_links, first_link, wrong_slots, first_slot = 0, 0, 0, 0, -1
    entries_at = HEADER_SIZE + slots * SLOT_SIZE
    for number in range(1, count):
        at = entries_at + number * ENTRY_SIZE
        key_hash = load_i32(buffer, at)
        previous = load_i32(buffer, at + _PREVIOUS_AT)
        slot = key_hash % slots
        if key_hash < 0 or previous != heads[slot]:
            wrong_links += 1
            if first_link == 0:
                first_link = number
        if key_hash >= 0:
            used += heads[slot] == 0
            heads[slot] = number
    for slot in range(slots):
        if load_i32(buffer, HEADER_SIZE + slot * SLOT_SIZE) != heads[slot]:
            wrong_slots += 1
            if first_slot < 0:
                first_slot = slot
    return used, wrong_links, first_link, wrong_slots, first_slot
