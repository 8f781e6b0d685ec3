"""UTF-8 as Java decodes it (`mqlake.formats.java_string`), a code point at a time."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.kernels.jit import inlined, outlined
from mqlake.kernels.memory import BLOCK, below_mask, load_u8

MALFORMED = -1
REPLACEMENT = 0xFFFD
_ASCII_END = 0x80


@inlined
def first_bytes(mask, count):
    """Return `mask` without the bits from `count` on."""
    if count >= BLOCK:
        return mask
    return mask & ((np.uint64(1) << np.uint64(count)) - np.uint64(1))


@inlined
def is_ascii(buffer, at, end):
    """Return whether all bytes from `at` to `end` are below 0x80."""
    while at < end:
        others = ~below_mask(buffer, at, _ASCII_END)
        if first_bytes(others, end - at) != 0:
            return False
        at += BLOCK
    return True


@inlined
def _is_continuation(buffer, at, end):
    return at < end and load_u8(buffer, at) & 0xC0 == 0x80


@outlined
def decode(buffer, at, end):
    """Return (code point or MALFORMED, bytes it takes) of what starts at `at` < `end`.

    A malformed stretch is as long as the one that Java replaces by one U+FFFD: the longest
    beginning of a well-formed sequence, or one byte; an encoded surrogate is one stretch.
    """
    lead = load_u8(buffer, at)
    if lead < 0x80:
        return lead, 1
    if lead < 0xC2 or lead > 0xF4:
        return MALFORMED, 1
    if lead < 0xE0:
        if not _is_continuation(buffer, at + 1, end):
            return MALFORMED, 1
        return (lead & 0x1F) << 6 | load_u8(buffer, at + 1) & 0x3F, 2
    if not _is_continuation(buffer, at + 1, end):
        return MALFORMED, 1
    second = load_u8(buffer, at + 1)
    # Neither overlong forms nor code points beyond U+10FFFF.
    if (
        (lead == 0xE0 and second < 0xA0)
        or (lead == 0xF0 and second < 0x90)
        or (lead == 0xF4 and second > 0x8F)
    ):
        return MALFORMED, 1
    if not _is_continuation(buffer, at + 2, end):
        return MALFORMED, 2
    third = load_u8(buffer, at + 2) & 0x3F
    if lead < 0xF0:
        if lead == 0xED and second >= 0xA0:
            return MALFORMED, 3
        return (lead & 0x0F) << 12 | (second & 0x3F) << 6 | third, 3
    if not _is_continuation(buffer, at + 3, end):
        return MALFORMED, 3
    fourth = load_u8(buffer, at + 3) & 0x3F
    return (lead & 0x07) << 18 | (second & 0x3F) << 12 | third << 6 | fourth, 4


@outlined
def is_valid_from(buffer, at, end):
    """Say the same as `is_valid`, a code point at a time: nothing behind `end` is read."""
    while at < end:
        code, length = decode(buffer, at, end)
        if code == MALFORMED:
            return False
        at += length
    return True


@inlined
def is_valid(buffer, at, end):
    """Return whether the bytes from `at` to `end` are well-formed UTF-8."""
    return is_ascii(buffer, at, end) or is_valid_from(buffer, at, end)
