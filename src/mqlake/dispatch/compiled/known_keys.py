"""Find what is known of a queue, or of a host, by the text that a message has for it.

A table is a part of `state`, an array of bytes: slots (numbers of rows, plus 1), a count, and rows.
A row that a kernel adds has PENDING for its value, until the caller of the kernel fills it in.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.queues import bytes_hash, equal_bytes
from mqlake.dispatch.writing.packed_layout import (
    COUNT_AT,
    KEY_AT,
    LENGTH_AT,
    NUMBER_AT,
    PENDING,
    VALUE_AT,
)
from mqlake.kernels.jit import inlined, outlined
from mqlake.kernels.memory import copy, load_i32, load_i64, store_i32, store_i64

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
FULL, TOO_LONG = -1, -2
"""Returned instead of a row: the table has no room for another one, or a row none for the text."""


@outlined
def _add(state, table, slot_at, source, at, length, number):
    slots_at, _, rows_at, row_size, most = table
    count_at = slots_at + COUNT_AT
    count = load_i64(state, count_at)
    if length > row_size - KEY_AT:
        return np.int64(TOO_LONG)
    if count == most:
        return np.int64(FULL)
    row = rows_at + count * row_size
    store_i64(state, row + LENGTH_AT, length)
    store_i64(state, row + NUMBER_AT, number)
    store_i64(state, row + VALUE_AT, PENDING)
    copy(state, row + KEY_AT, source, at, length)
    store_i32(state, slot_at, count + 1)
    store_i64(state, count_at, count + 1)
    return row


@inlined
def find_row(state, table, source, at, length, number, seed):
    """Return the position of the row of a text together with a number; add it if it is missing.

    Args:
        table: position of the slots, their number (a power of 2), position of the rows, bytes of a
            row, maximum number of rows: less than that of slots.
        at, length: of the text in `source`, which has at least 8 bytes before it.

    Returns:
        FULL or TOO_LONG if there is no room.
    """
    slots_at, slots = table[0], table[1]
    rows_at, row_size = table[2], table[3]
    state_of_hash = seed ^ np.uint64(number) * _MULTIPLIER
    slot = np.int64(bytes_hash(source, at, length, state_of_hash)) & (slots - 1)
    while True:
        slot_at = slots_at + 4 * slot
        entry = load_i32(state, slot_at)
        if entry == 0:
            return _add(state, table, slot_at, source, at, length, number)
        row = rows_at + (entry - 1) * row_size
        if (
            load_i64(state, row + LENGTH_AT) == length
            and load_i64(state, row + NUMBER_AT) == number
            and equal_bytes(source, at, state, row + KEY_AT, length)
        ):
            return row
        slot = (slot + 1) & (slots - 1)
