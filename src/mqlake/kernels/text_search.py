"""Search for a text that seldom occurs."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.kernels.jit import inlined, outlined
from mqlake.kernels.memory import BLOCK, equal_mask, load_u8, lowest_bit

_ONE = np.uint64(1)


@outlined
def _is_there(buffer, at, end, text, first):
    if first < at or end - first < len(text):
        return False
    for place in range(len(text)):  # noqa: SIM110 (Numba knows no generators)
        if load_u8(buffer, first + place) != text[place]:
            return False
    return True


@inlined
def holds(buffer, at, end, text, rare):
    """Return whether the bytes from `at` to `end` hold a text; `rare` is the place of a byte in it.

    That byte is looked for in blocks; nothing behind `end` is loaded.
    """
    byte = np.int64(text[rare])
    if end - at < BLOCK:
        for place in range(at, end):
            if load_u8(buffer, place) == byte and _is_there(buffer, at, end, text, place - rare):
                return True
        return False
    for start in range(at, end, BLOCK):
        block = min(start, end - BLOCK)  # the last block overlaps the one before it
        bits = equal_mask(buffer, block, byte)
        while bits != 0:
            if _is_there(buffer, at, end, text, block + lowest_bit(bits) - rare):
                return True
            bits &= bits - _ONE
    return False
