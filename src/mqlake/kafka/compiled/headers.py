"""Find the names and values of record headers, after `records` has proved them valid."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow, load_u8


@inlined
def _length(buffer, at):
    """Return (length of at most 32 bits, -1 for null; position after it)."""
    raw = shift = 0
    while True:
        byte = load_u8(buffer, at)
        raw |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return (raw & 0xFFFFFFFF) >> 1 ^ -(raw & 1), at


@kernel
def header_spans(buffer, at, counts):
    """Return (name positions, name lengths, value positions, value lengths) of all headers.

    `at` is where each record's first header is, `counts` how many it has. A null value has length
    -1.
    """
    buffer = borrow(buffer)
    total = np.int64(0)
    for row in range(len(counts)):
        total += counts[row]
    name_at, value_at = np.empty(total, np.int64), np.empty(total, np.int64)
    name_lengths, value_lengths = np.empty(total, np.int32), np.empty(total, np.int32)
    number = 0
    for row in range(len(at)):
        place = np.int64(at[row])
        for _ in range(counts[row]):
            length, place = _length(buffer, place)
            name_at[number], name_lengths[number] = place, length
            length, place = _length(buffer, place + length)
            value_at[number], value_lengths[number] = place, length
            place += max(length, 0)
            number += 1
    return name_at, name_lengths, value_at, value_lengths
