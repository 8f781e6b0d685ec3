"""CRC-32C as Kafka's batches have it, for kernels: `crc32c(buffer, start, length)`.

One of three, by what Numba compiles for: the CRC32 instruction of SSE 4.2 on three stretches at
once (x86-64 with PCLMULQDQ), the CRC32CX instruction (aarch64), tables (anything else). The caller
has checked that the bytes lie within the buffer.

The instruction takes a cycle, but its result three: three registers over neighbouring stretches
keep it busy. What a register is worth a stretch further on is its product with a power of x, which
a carry-less multiplication gives, and one more step of the instruction reduces. Bits are reflected,
as in `crc32.py`: the product comes out one place too low, and the step multiplies by x^32.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from typing import Any

import numpy as np

from mqlake.kernels import polynomial
from mqlake.kernels.instructions import (
    AARCH64,
    X86_64,
    crc32c_step_aarch64,
    crc32c_step_x86,
    half,
    pair,
    product_low,
    target_has,
)
from mqlake.kernels.jit import inlined, outlined
from mqlake.kernels.memory import load_u8, load_word

_BYTE, _ALL, _NONE = np.uint64(8), np.uint64(0xFFFFFFFF), np.uint64(0)
_LOW_BYTE = np.uint64(0xFF)

_TABLE = np.array(polynomial.byte_table(8, polynomial.CRC32C), np.uint64)

_STRETCH = 512
"""Bytes of one of the three: long enough to make up for the combination."""


def _distance(length: int) -> np.uint64:
    """Return what moves a register over `length` bytes, together with a step of zeros."""
    power = polynomial.power(8 * length - 33, polynomial.CRC32C)
    return np.uint64(polynomial.reflect(power, 32))


_ONE_ON, _TWO_ON = _distance(_STRETCH), _distance(2 * _STRETCH)


@inlined
def _bytewise(register, buffer, start, end):
    for at in range(start, end):
        index = (register ^ np.uint64(load_u8(buffer, at))) & _LOW_BYTE
        register = _TABLE[0, index] ^ register >> _BYTE
    return register


@outlined
def crc32c_tables(buffer, start, length):
    """Eight bytes a step, by one table for each of their places."""
    register, end = _ALL, start + length
    while end - start >= 8:
        word = load_word(buffer, start) ^ register
        register = _NONE
        for place in range(8):
            register ^= _TABLE[7 - place, word >> _BYTE * np.uint64(place) & _LOW_BYTE]
        start += 8
    return np.int64(_bytewise(register, buffer, start, end) ^ _ALL)


@inlined
def crc32c_aarch64(buffer, start, length):
    """Eight bytes a step, by aarch64's own instruction."""
    register, end = _ALL, start + length
    while end - start >= 8:
        register = crc32c_step_aarch64(register, load_word(buffer, start))
        start += 8
    return np.int64(_bytewise(register, buffer, start, end) ^ _ALL)


@inlined
def _product(register, distance):
    return half(product_low(pair(register, _NONE), pair(distance, _NONE)), 0)


@inlined
def crc32c_x86(buffer, start, length):
    """Twenty-four bytes a step, eight of each stretch; then eight."""
    register, end = _ALL, start + length
    while end - start >= 3 * _STRETCH:
        second, third = _NONE, _NONE
        for at in range(start, start + _STRETCH, 8):
            register = crc32c_step_x86(register, load_word(buffer, at))
            second = crc32c_step_x86(second, load_word(buffer, at + _STRETCH))
            third = crc32c_step_x86(third, load_word(buffer, at + 2 * _STRETCH))
        moved = _product(register, _TWO_ON) ^ _product(second, _ONE_ON)
        register = third ^ crc32c_step_x86(_NONE, moved)
        start += 3 * _STRETCH
    while end - start >= 8:
        register = crc32c_step_x86(register, load_word(buffer, start))
        start += 8
    return np.int64(_bytewise(register, buffer, start, end) ^ _ALL)


def _choose() -> Any:
    if X86_64 and target_has("sse4.2") and target_has("pclmul"):
        return crc32c_x86
    if AARCH64 and target_has("crc"):
        return crc32c_aarch64
    return crc32c_tables


crc32c = _choose()
