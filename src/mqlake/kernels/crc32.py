"""CRC-32 as zlib computes it, for kernels: `crc32(buffer, start, length)`.

One of three, by what Numba compiles for: carry-less multiplication (x86-64 with PCLMULQDQ), the
CRC32X instruction (aarch64), tables (anything else). The caller has checked that the bytes lie
within the buffer.

Carry-less multiplication, after Gopal and others, "Fast CRC Computation for Generic Polynomials
Using PCLMULQDQ Instruction" (Intel, 2009): a block of 16 bytes is a polynomial of degree 127. It is
folded onto a later block: multiplied by what its distance is worth modulo the CRC polynomial, and
added. The last block is then reduced to 32 bits.

CRC-32 reflects its bits: bit 0 of a loaded block is the coefficient of x^127. The product of two
reflected 64-bit halves comes out one place too low, that is, multiplied by x. So a factor x^n is
kept as x^(n-1).
"""

# pyright: basic
# Reason: Numba's extension interface and llvmlite carry no types.

from __future__ import annotations

from typing import Any

import numpy as np

from mqlake.kernels import polynomial
from mqlake.kernels.instructions import (
    AARCH64,
    X86_64,
    add,
    crc32_step_aarch64,
    half,
    load_block,
    pair,
    product_high,
    product_low,
    shift,
    target_has,
)
from mqlake.kernels.jit import inlined, outlined
from mqlake.kernels.memory import load_u8, load_word

# Numba turns uint64 mixed with int64 into float64: every constant below is a uint64.
_BYTE, _WORD, _ALL = np.uint64(8), np.uint64(32), np.uint64(0xFFFFFFFF)
_LOW_BYTE, _NONE = np.uint64(0xFF), np.uint64(0)

_TABLE = np.array(polynomial.byte_table(16), np.uint64)


def _factor(exponent: int, bits: int = 64) -> np.uint64:
    return np.uint64(polynomial.reflect(polynomial.power(exponent - 1), bits))


def _distance(bits: int) -> tuple[np.uint64, np.uint64]:
    """Return what moves the two halves of a block, first the one of higher powers, by `bits`."""
    return _factor(bits + 64), _factor(bits)


_FOLD_1, _FOLD_2, _FOLD_3, _FOLD_4 = (_distance(128 * blocks) for blocks in (1, 2, 3, 4))
_X_96, _X_64 = _factor(96), _factor(64, 32)
_CRC32 = np.uint64(polynomial.reflect(polynomial.CRC32, 33))
_INVERSE = np.uint64(polynomial.reflect(polynomial.divide(1 << 64, polynomial.CRC32)[0], 33))


@inlined
def _bytewise(register, buffer, start, end):
    for at in range(start, end):
        index = (register ^ np.uint64(load_u8(buffer, at))) & _LOW_BYTE
        register = _TABLE[0, index] ^ register >> _BYTE
    return register


@outlined
def crc32_tables(buffer, start, length):
    """Sixteen bytes a step, by one table for each of their places."""
    register, end = _ALL, start + length
    while end - start >= 16:
        early, late = load_word(buffer, start) ^ register, load_word(buffer, start + 8)
        register = _NONE
        # LLVM adds these up in this order: `late` waits for nothing, so it goes first.
        for place in range(8):
            register ^= _TABLE[7 - place, late >> _BYTE * np.uint64(place) & _LOW_BYTE]
        for place in range(8):
            register ^= _TABLE[15 - place, early >> _BYTE * np.uint64(place) & _LOW_BYTE]
        start += 16
    return np.int64(_bytewise(register, buffer, start, end) ^ _ALL)


@inlined
def crc32_instruction(buffer, start, length):
    """Eight bytes a step, by aarch64's own instruction."""
    register, end = _ALL, start + length
    while end - start >= 8:
        register = crc32_step_aarch64(register, load_word(buffer, start))
        start += 8
    return np.int64(_bytewise(register, buffer, start, end) ^ _ALL)


@inlined
def _fold(block, distance, later):
    factors = pair(distance[0], distance[1])
    return add(later, add(product_low(block, factors), product_high(block, factors)))


@inlined
def _times(a, b):
    return half(product_low(pair(a, _NONE), pair(b, _NONE)), 0)


@inlined
def _reduce(block):
    """Return block * x^32 modulo the polynomial: 96 bits, 64, then Barrett's division."""
    low = half(block, 1)
    block = add(product_low(block, pair(_X_96, _NONE)), pair(low << _WORD, low >> _WORD))
    rest = half(block, 1) ^ _times(half(block, 0) >> _WORD, _X_64)
    quotient = _times(rest & _ALL, _INVERSE) & _ALL
    return (rest ^ _times(quotient, _CRC32)) >> _WORD


@inlined
def crc32_multiplied(buffer, start, length):
    """Sixty-four bytes a step, by carry-less multiplication."""
    register, end = _ALL, start + length
    if length >= 16:
        # The odd bytes go first, behind zeros, which do not count: so all later blocks are whole,
        # and no load waits for a shift. The register belongs onto the first four bytes.
        odd = (length - 1 & 15) + 1
        first = add(load_block(buffer, start), pair(register, _NONE))
        a = shift(first, np.uint64(8 * (16 - odd)))
        register >>= np.uint64(min(8 * odd, 32))
        start += odd
        if end - start >= 48:
            # Four chains hide the multiplier's latency.
            b = add(load_block(buffer, start), pair(register, _NONE))
            c, d = load_block(buffer, start + 16), load_block(buffer, start + 32)
            register = _NONE
            start += 48
            while end - start >= 64:
                a = _fold(a, _FOLD_4, load_block(buffer, start))
                b = _fold(b, _FOLD_4, load_block(buffer, start + 16))
                c = _fold(c, _FOLD_4, load_block(buffer, start + 32))
                d = _fold(d, _FOLD_4, load_block(buffer, start + 48))
                start += 64
            a = _fold(a, _FOLD_3, _fold(b, _FOLD_2, _fold(c, _FOLD_1, d)))
        while start < end:
            a = _fold(a, _FOLD_1, add(load_block(buffer, start), pair(register, _NONE)))
            register = _NONE
            start += 16
        register = _reduce(a)
    return np.int64(_bytewise(register, buffer, start, end) ^ _ALL)


def _choose() -> Any:
    if X86_64 and target_has("pclmul"):
        return crc32_multiplied
    if AARCH64 and target_has("crc"):
        return crc32_instruction
    return crc32_tables


crc32 = _choose()
