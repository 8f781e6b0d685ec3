"""Append entries to a file of light queues, and note the newest entry of each queue."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.formats.light.light_queue_file import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE
from mqlake.kernels.jit import brief_kernel, inlined
from mqlake.kernels.memory import borrow, load_i32, load_i64, store_i32, store_i64
from mqlake.kernels.rows.compiled import has_room, place_of

_PHYSICAL_AT, _OFFSET_AT, _SIZE_AT = 8, 16, 24
_SLOT_PREVIOUS_AT, _PREVIOUS_AT, _JUMP_AT = 28, 32, 36


@inlined
def _entry_at(slots, number):
    return HEADER_SIZE + slots * SLOT_SIZE + number * ENTRY_SIZE


@inlined
def _bounded(jump, previous):
    """Return the number to which a link leads, whatever the bytes are."""
    return jump if 0 < jump < previous else previous


@inlined
def _jump(buffer, slots, previous):
    """Return the second way back of an entry after `previous`: see the twin."""
    last = _entry_at(slots, previous)
    middle = _entry_at(slots, _bounded(load_i32(buffer, last + _JUMP_AT), previous))
    jump = _bounded(load_i32(buffer, middle + _JUMP_AT), previous)
    first = load_i64(buffer, _entry_at(slots, jump) + _OFFSET_AT)
    far = load_i64(buffer, middle + _OFFSET_AT)
    near = load_i64(buffer, last + _OFFSET_AT) - far
    return jump if near == far - first else previous


@inlined
def _put(buffer, slots, number, previous, message):
    """Write an entry, and lead its slot to it."""
    slot = HEADER_SIZE + np.int64(message.name_hash % np.uint64(slots)) * SLOT_SIZE
    at = _entry_at(slots, number)
    jump = number
    if previous > 0:
        jump = _jump(buffer, slots, previous)
    store_i64(buffer, at, np.int64(message.name_hash))
    store_i64(buffer, at + _PHYSICAL_AT, message.physical_offset)
    store_i64(buffer, at + _OFFSET_AT, message.queue_offset)
    store_i32(buffer, at + _SIZE_AT, np.int64(message.size))
    store_i32(buffer, at + _SLOT_PREVIOUS_AT, load_i32(buffer, slot))
    store_i32(buffer, at + _PREVIOUS_AT, previous)
    store_i32(buffer, at + _JUMP_AT, jump)
    store_i32(buffer, slot, number)


@brief_kernel
def append(
    buffer,
    slots,
    capacity,
    base,
    following,
    queues,
    rows,
    used,
    messages,
    first,
    low,
    alive,
    accepted,
):
    """Append the entries of messages: see `LightKernel.append`; returns `LightAppended`."""
    buffer, rows, used = borrow(buffer), borrow(rows), borrow(used)
    messages, accepted = borrow(messages), borrow(accepted)
    refused = -1
    for row in range(first, len(messages)):
        message = messages[row]
        accepted[row] = False
        if message.physical_offset < low:
            continue
        newest = rows[place_of(rows, message.name_hash)]
        is_new = newest.number == 0
        counts = not is_new and newest.physical_offset >= alive
        if counts and message.queue_offset <= newest.queue_offset:
            if refused < 0:
                refused = row
            continue
        if is_new and not has_room(used[0], len(rows)):
            return row, following, queues, refused
        accepted[row] = True
        if following > capacity:
            continue
        previous = np.int64(0)
        if not is_new and newest.physical_offset >= base:
            previous = np.int64(newest.number)
        _put(buffer, slots, following, previous, message)
        queues += previous == 0
        used[0] += is_new
        newest.name_hash, newest.physical_offset = message.name_hash, message.physical_offset
        newest.queue_offset, newest.number = message.queue_offset, following
        newest.size = message.size
        following += 1
    return len(messages), following, queues, refused


@brief_kernel
def collect(buffer, slots, following, number, rows, used):
    """Note the entries of a file from a number on; return the first one that has no room."""
    buffer, rows, used = borrow(buffer), borrow(rows), borrow(used)
    while number < following:
        at = _entry_at(slots, number)
        name_hash = np.uint64(load_i64(buffer, at))
        newest = rows[place_of(rows, name_hash)]
        if newest.number == 0:
            if not has_room(used[0], len(rows)):
                break
            used[0] += 1
            newest.name_hash = name_hash
        newest.physical_offset = load_i64(buffer, at + _PHYSICAL_AT)
        newest.queue_offset = load_i64(buffer, at + _OFFSET_AT)
        newest.number, newest.size = number, load_i32(buffer, at + _SIZE_AT)
        number += 1
    return number


@brief_kernel
def move(source, rows, used, low):
    """Note the rows of another table whose physical offsets are not before `low`."""
    source, rows, used = borrow(source), borrow(rows), borrow(used)
    for place in range(len(source)):
        row = source[place]
        if row.number != 0 and row.physical_offset >= low:
            newest = rows[place_of(rows, row.name_hash)]
            used[0] += 1
            newest.name_hash, newest.physical_offset = row.name_hash, row.physical_offset
            newest.queue_offset, newest.number = row.queue_offset, row.number
            newest.size = row.size
