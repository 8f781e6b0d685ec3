"""Numbers as decimal digits."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import store_u8

_ZERO = ord("0")


@inlined
def put_decimal(target, to, number):
    """Write a number of 0 or more; return the position after it."""
    digits, rest = 1, number // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for place in range(to + digits - 1, to - 1, -1):
        store_u8(target, place, _ZERO + number % 10)
        number //= 10
    return to + digits
