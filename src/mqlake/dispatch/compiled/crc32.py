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

import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, codegen
from numba.extending import models, register_model

from mqlake.dispatch.compiled import polynomial
from mqlake.dispatch.compiled.jit import ANY, config, emitted, inlined, outlined
from mqlake.dispatch.compiled.memory import load_u8, load_word, typed_pointer

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


class _BlockType(types.Type):
    """Sixteen bytes in one vector register; a pair of numbers would not stay in one."""

    def __init__(self) -> None:
        super().__init__(name="mqlake.crc32.Block")


_I8, _I32, _I64, _I128 = (ir.IntType(bits) for bits in (8, 32, 64, 128))
_VECTOR = ir.VectorType(_I64, 2)
_block = _BlockType()


@register_model(_BlockType)
class _BlockModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _emit_load_block(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    return builder.load(typed_pointer(context, builder, kinds, values, _VECTOR, 16), align=1)


def _operation(result: Any, left: Any, right: Any, emit: Any) -> Any:
    return emitted(
        result,
        left,
        right,
        emit=lambda _context, builder, _kinds, values: emit(builder, *values),
    )


def _call(builder: Any, name: str, result: Any, *values: Any) -> Any:
    kind = ir.FunctionType(result, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)


def _emit_pair(builder: Any, low: Any, high: Any) -> Any:
    half_filled = builder.insert_element(ir.Constant(_VECTOR, [0, 0]), low, _I32(0))
    return builder.insert_element(half_filled, high, _I32(1))


def _emit_shift(builder: Any, block: Any, bits: Any) -> Any:
    number = builder.bitcast(block, _I128)
    return builder.bitcast(builder.shl(number, builder.zext(bits, _I128)), _VECTOR)


def _emit_product(halves: int) -> Any:
    return lambda builder, a, b: _call(builder, "llvm.x86.pclmulqdq", _VECTOR, a, b, _I8(halves))


def _emit_crc32x(builder: Any, crc: Any, word: Any) -> Any:
    return _call(builder, "llvm.aarch64.crc32x", _I32, crc, word)


_load_block = emitted(_block, ANY, types.int64, emit=_emit_load_block)
_pair = _operation(_block, types.uint64, types.uint64, _emit_pair)
_shift = _operation(_block, _block, types.uint64, _emit_shift)
_add = _operation(_block, _block, _block, lambda builder, a, b: builder.xor(a, b))
_half = _operation(
    types.uint64, _block, types.int64, lambda builder, a, i: builder.extract_element(a, i)
)
_product_low = _operation(_block, _block, _block, _emit_product(0x00))
_product_high = _operation(_block, _block, _block, _emit_product(0x11))
_crc32x = _operation(types.uint32, types.uint32, types.uint64, _emit_crc32x)


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
    register, end = np.uint32(_ALL), start + length
    while end - start >= 8:
        register = _crc32x(register, load_word(buffer, start))
        start += 8
    return np.int64(_bytewise(np.uint64(register), buffer, start, end) ^ _ALL)


@inlined
def _fold(block, distance, later):
    factors = _pair(distance[0], distance[1])
    return _add(later, _add(_product_low(block, factors), _product_high(block, factors)))


@inlined
def _times(a, b):
    return _half(_product_low(_pair(a, _NONE), _pair(b, _NONE)), 0)


@inlined
def _reduce(block):
    """Return block * x^32 modulo the polynomial: 96 bits, 64, then Barrett's division."""
    low = _half(block, 1)
    block = _add(_product_low(block, _pair(_X_96, _NONE)), _pair(low << _WORD, low >> _WORD))
    rest = _half(block, 1) ^ _times(_half(block, 0) >> _WORD, _X_64)
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
        first = _add(_load_block(buffer, start), _pair(register, _NONE))
        a = _shift(first, np.uint64(8 * (16 - odd)))
        register >>= np.uint64(min(8 * odd, 32))
        start += odd
        if end - start >= 48:
            # Four chains hide the multiplier's latency.
            b = _add(_load_block(buffer, start), _pair(register, _NONE))
            c, d = _load_block(buffer, start + 16), _load_block(buffer, start + 32)
            register = _NONE
            start += 48
            while end - start >= 64:
                a = _fold(a, _FOLD_4, _load_block(buffer, start))
                b = _fold(b, _FOLD_4, _load_block(buffer, start + 16))
                c = _fold(c, _FOLD_4, _load_block(buffer, start + 32))
                d = _fold(d, _FOLD_4, _load_block(buffer, start + 48))
                start += 64
            a = _fold(a, _FOLD_3, _fold(b, _FOLD_2, _fold(c, _FOLD_1, d)))
        while start < end:
            a = _fold(a, _FOLD_1, _add(_load_block(buffer, start), _pair(register, _NONE)))
            register = _NONE
            start += 16
        register = _reduce(a)
    return np.int64(_bytewise(register, buffer, start, end) ^ _ALL)


def _target_has(feature: str) -> bool:
    """Say whether Numba compiles for a CPU with `feature`.

    Not whether this CPU has it: where LLVM is told of a lesser one (NUMBA_CPU_NAME), an
    instruction beyond it does not fail to compile, it ends the process.
    """
    told = config.CPU_FEATURES
    features = codegen.get_host_cpu_features() if told is None else told
    return f"+{feature}" in features.split(",")


def _choose() -> Any:
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64") and _target_has("pclmul"):
        return crc32_multiplied
    if machine in ("aarch64", "arm64") and _target_has("crc"):
        return crc32_instruction
    return crc32_tables


crc32 = _choose()
