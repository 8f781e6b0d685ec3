"""Write the checksum of a whole record; find one that a message has (`formats.record_crc`)."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.formats import record_crc
from mqlake.kernels.crc32 import crc32
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow, load_u8, store_i64, store_u8
from mqlake.kernels.text_search import holds

_FIRST = np.frombuffer(record_crc.FIRST, np.uint8)
_FIRST_SIZE, _SIZE = len(record_crc.FIRST), record_crc.SIZE
_SEPARATOR, _ZERO = record_crc.SEPARATOR, np.uint64(ord("0"))
# Numba turns uint64 mixed with int64 into float64: every constant below is a uint64.
_MASK, _TEN = np.uint64(record_crc.MASK), np.uint64(10)
_NAME, _NAME_END = int.from_bytes(record_crc.FIRST[:8], "big"), record_crc.FIRST[8]
_RARE = record_crc.FIRST.index(b"#")


@inlined
def put_record_crc(target, start, to):
    """Write the property that states the CRC of the bytes from `start` to `to`; the end of it."""
    crc = np.uint64(crc32(target, start, to - start)) & _MASK
    store_i64(target, to, _NAME)
    store_u8(target, to + 8, _NAME_END)
    for place in range(to + _FIRST_SIZE, to + _SIZE - 1):
        store_u8(target, place, np.int64(_ZERO + crc % _TEN))
        crc //= _TEN
    store_u8(target, to + _SIZE - 1, _SEPARATOR)
    return to + _SIZE


@inlined
def missing_separator(texts, at, length):
    """Return 1 if a separator is to be put between properties and the CRC, else 0."""
    return np.int64(length > 0 and load_u8(texts, at + length - 1) != _SEPARATOR)


@inlined
def may_hold_crc(texts, at, end):
    """Return whether properties may have one of this name: it may also be part of another's
    value.
    """
    return holds(texts, at, end, _FIRST, _RARE)


@kernel
def properties_with_crc(texts, drafts):
    """Return (whether a draft brings a CRC, most and all bytes of properties with one)."""
    texts = borrow(texts)
    brings, most, total = False, np.int64(0), np.int64(0)
    for row in range(len(drafts)):
        at, length = drafts[row].properties_at, np.int64(drafts[row].properties_length)
        brings |= may_hold_crc(texts, at, at + length)
        length += missing_separator(texts, at, length) + _SIZE
        most, total = max(most, length), total + length
    return brings, most, total


@kernel
def state_crcs(buffer, starts, sizes):
    """Let records, each with room for it at its end, state their CRC."""
    buffer = borrow(buffer)
    for row in range(len(starts)):
        put_record_crc(buffer, starts[row], starts[row] + np.int64(sizes[row]) - _SIZE)
