"""The CRC-32 of two pieces, from the CRC-32 of each, as zlib's `crc32_combine`.

A record has a CRC of its body, and one of all its bytes: so the body, which may have megabytes, is
gone through once.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from mqlake.kernels import polynomial

_REFLECTED: Final = polynomial.reflect(polynomial.CRC32, 33) >> 1
"""The polynomial of CRC-32 without x^32: bit 31 is the coefficient of x^0."""
_ONE: Final = 1 << 31


def joined_crc(first: int, second: int, second_length: int) -> int:
    """Return the CRC-32 of two pieces, from that of each and the bytes of the second one."""
    at = 0
    while second_length:
        if second_length & 1:
            first = _times(first, _zeros(at))
        second_length >>= 1
        at += 1
    return first ^ second


@cache
def _zeros(exponent: int) -> int:
    """Return what a CRC is multiplied by if 2^exponent zero bytes follow."""
    if not exponent:
        return _ONE >> 8
    half = _zeros(exponent - 1)
    return _times(half, half)


def _times(left: int, right: int) -> int:
    """Return the product of two polynomials modulo that of CRC-32, all reflected."""
    product = 0
    while left:
        if left & _ONE:
            product ^= right
        left = left << 1 & 0xFFFFFFFF
        right = right >> 1 ^ (_REFLECTED if right & 1 else 0)
    return product
