"""Write the checksum of a whole record; find one that a message brings (`formats.record_crc`)."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.dispatch.compiled.crc32 import crc32
from mqlake.dispatch.compiled.jit import inlined, kernel, outlined
from mqlake.dispatch.compiled.memory import borrow, copy, load_u8, load_word, store_u8
from mqlake.formats import record_crc

_FIRST = np.frombuffer(record_crc.FIRST, np.uint8)
_FIRST_SIZE, _SIZE = len(record_crc.FIRST), record_crc.SIZE
_NAME_SIZE = len(record_crc.NAME)
_SEPARATOR, _ZERO = record_crc.SEPARATOR, np.uint64(ord("0"))
# Numba turns uint64 mixed with int64 into float64: every constant below is a uint64.
_MASK, _TEN = np.uint64(record_crc.MASK), np.uint64(10)

_LAST_OF_NAME = ord(record_crc.NAME[-1])
_LAST_IN_ALL = np.uint64(_LAST_OF_NAME * 0x0101010101010101)
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


@inlined
def put_record_crc(target, start, to):
    """Write the property that states the CRC of the bytes from `start` to `to`; the end of it."""
    copy(target, to, _FIRST, 0, _FIRST_SIZE)
    rest = np.uint64(crc32(target, start, to - start)) & _MASK
    for place in range(to + _FIRST_SIZE, to + _SIZE - 1):
        store_u8(target, place, np.int64(_ZERO + rest % _TEN))
        rest //= _TEN
    store_u8(target, to + _SIZE - 1, _SEPARATOR)
    return to + _SIZE


@inlined
def missing_separator(texts, at, length):
    """Return 1 if a separator is to be put between properties and the CRC, else 0."""
    return np.int64(length > 0 and load_u8(texts, at + length - 1) != _SEPARATOR)


@outlined
def _begins_before(texts, at, last):
    """Say whether the byte at `last` ends the name, and its separator follows."""
    first = last - _NAME_SIZE + 1
    if first < at:
        return False
    for place in range(_FIRST_SIZE):  # noqa: SIM110 (Numba knows no generators)
        if load_u8(texts, first + place) != _FIRST[place]:
            return False
    return True


@outlined
def may_hold_crc(texts, at, end):
    """Say whether properties may have one of this name: it may also be part of another's value.

    The name's last byte is rare, and looked for eight bytes at a time.
    """
    place, last = at, end - 1
    while last - place >= 8:
        word = load_word(texts, place) ^ _LAST_IN_ALL
        if (word - _ONES) & ~word & _TOPS != 0:
            for byte in range(place, place + 8):
                if load_u8(texts, byte) == _LAST_OF_NAME and _begins_before(texts, at, byte):
                    return True
        place += 8
    for byte in range(place, last):
        if load_u8(texts, byte) == _LAST_OF_NAME and _begins_before(texts, at, byte):
            return True
    return False


@kernel
def state_crcs(buffer, starts, sizes):
    """Let records, each with room for it at its end, state their CRC."""
    buffer = borrow(buffer)
    for row in range(len(starts)):
        put_record_crc(buffer, starts[row], starts[row] + np.int64(sizes[row]) - _SIZE)
