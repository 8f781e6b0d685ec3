"""Read MessagePack that this process has made: it is taken to be well-formed."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.kernels.jit import outlined
from mqlake.kernels.memory import load_i32, load_i64, load_u8, load_u16, load_u32

INT, TEXT, BYTES, LIST, MAP, NIL, OTHER = range(7)
"""Kinds of values; OTHER: booleans, floating-point numbers, integers above i8, extensions."""

SMALL_NUMBERS = 0x80
"""Bytes below this are numbers themselves."""

NOTHING = 0xC0


@outlined
def value(source, at):
    """Return (kind, position of the content, number or length, position of the next value).

    Of lists and maps only the head is read: the next value is the first one inside.
    """
    byte = load_u8(source, at)
    at += 1
    if byte < SMALL_NUMBERS:
        return INT, at, byte, at
    if byte < 0x90:
        return MAP, at, byte & 0x0F, at
    if byte < 0xA0:
        return LIST, at, byte & 0x0F, at
    if byte < 0xC0:
        return TEXT, at, byte & 0x1F, at + (byte & 0x1F)
    if byte == NOTHING:
        return NIL, at, 0, at
    if byte >= 0xE0:
        return INT, at, byte - 0x100, at
    if 0xCC <= byte <= 0xD3:
        return _number(source, at, byte)
    if 0xC4 <= byte <= 0xC6:
        length, at = _length(source, at, byte - 0xC4)
        return BYTES, at, length, at + length
    if 0xD9 <= byte <= 0xDB:
        length, at = _length(source, at, byte - 0xD9)
        return TEXT, at, length, at + length
    if byte >= 0xDC:
        length, at = _length(source, at, 1 + (byte & 1))
        return (LIST if byte < 0xDE else MAP), at, length, at
    return _other(source, at, byte)


@outlined
def _length(source, at, power):
    """Read an unsigned number of 2^power bytes; (number, position after it)."""
    if power == 0:
        return load_u8(source, at), at + 1
    if power == 1:
        return load_u16(source, at), at + 2
    return load_u32(source, at), at + 4


@outlined
def _number(source, at, byte):
    size = 1 << (byte & 3)
    if byte == 0xCF:
        number = load_i64(source, at)
        return (INT if number >= 0 else OTHER), at, number, at + size
    if byte < 0xCF:
        number, _ = _length(source, at, byte & 3)
    elif byte == 0xD3:
        number = load_i64(source, at)
    elif byte == 0xD2:
        number = load_i32(source, at)
    else:
        number, _ = _length(source, at, byte & 3)
        sign = 0x80 if byte == 0xD0 else 0x8000
        number -= (number & sign) << 1
    return INT, at, number, at + size


@outlined
def _other(source, at, byte):
    length = 0  # booleans
    if byte == 0xCA or byte == 0xCB:
        length = 4 << (byte & 1)
    elif byte >= 0xD4:
        length = 1 + (1 << (byte - 0xD4))
    elif byte >= 0xC7:
        size, inside = _length(source, at, byte - 0xC7)
        length = inside - at + 1 + size
    return OTHER, at, length, at + length


@outlined
def behind(source, at, values):
    """Return the position behind so many values, with all that is in them."""
    while values > 0:
        kind, _, number, at = value(source, at)
        values -= 1
        if kind == LIST:
            values += number
        elif kind == MAP:
            values += 2 * number
    return at
