"""Find records that have lost bytes since they were written with a checksum of all of them."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.formats import record_crc
from mqlake.kernels.crc32 import crc32
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import borrow, load_i64, load_u8

_SIZE, _DIGITS, _MASK = record_crc.SIZE, record_crc.DIGITS, record_crc.MASK
_NAME, _NAME_END = int.from_bytes(record_crc.FIRST[:8], "big"), record_crc.FIRST[8]
_SEPARATOR, _ZERO = record_crc.SEPARATOR, ord("0")


@inlined
def _stated(buffer, at):
    """Return the CRC in the property at a position, or -1 if there is no such property."""
    last = at + _SIZE - 1
    if load_i64(buffer, at) != _NAME or load_u8(buffer, at + 8) != _NAME_END:
        return -1
    if load_u8(buffer, last) != _SEPARATOR:
        return -1
    crc = 0
    for place in range(_DIGITS):
        digit = load_u8(buffer, last - 1 - place) - _ZERO
        if digit < 0 or digit > 9:
            return -1
        crc = crc * 10 + digit
    return crc


@inlined
def _has_zero(buffer, start, end):
    zeros = 0
    for at in range(start, end):
        zeros += load_u8(buffer, at) == 0
    return zeros > 0


@inlined
def _is_torn(buffer, at, size, properties_length):
    """Return what `mqlake.formats.record.is_torn` does."""
    if properties_length < _SIZE:
        return False
    end = at + size - _SIZE
    stated = _stated(buffer, end)
    if stated < 0:
        return _has_zero(buffer, end, end + _SIZE)
    return crc32(buffer, at, size - _SIZE) & _MASK != stated


@kernel
def first_torn(buffer, base, records):
    """Return the row of the first torn record, or the number of rows without one."""
    buffer, records = borrow(buffer), borrow(records)
    for row in range(len(records)):
        found = records[row]
        if _is_torn(buffer, found.physical_offset - base, found.size, found.properties_length):
            return row
    return len(records)
