"""SHA-1 of whole blocks, for kernels: `sha1_blocks(state, to, buffer, at, count)`.

A state is 20 bytes: the five words of FIPS 180-4, big-endian, so that the last state is the digest.
The caller pads the message, and has checked that all blocks lie within the buffer.

One of two, by what Numba compiles for: the instructions of x86-64 for SHA (four rounds each), or
ordinary ones. `hashlib` is what both must equal.
"""

# pyright: basic
# Reason: Numba's extension interface and llvmlite carry no types.

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from mqlake.kernels.instructions import X86_64, target_has
from mqlake.kernels.jit import ANY, emitted, outlined
from mqlake.kernels.memory import typed_pointer

BLOCK = 64
"""Bytes of a block."""
DIGEST = 20
"""Bytes of a digest, and of a state."""
START = np.frombuffer(bytes.fromhex("67452301efcdab8998badcfe10325476c3d2e1f0"), np.uint8)
"""The state before the first block."""

_I8, _I32 = ir.IntType(8), ir.IntType(32)
_BYTES, _WORDS = ir.VectorType(_I8, 16), ir.VectorType(_I32, 4)
_REVERSED = ir.Constant(ir.VectorType(_I32, 16), list(range(15, -1, -1)))
_ROUNDS, _QUARTER = 80, 20
_CONSTANTS = 0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6


def _call(builder: Any, name: str, *values: Any) -> Any:
    kind = ir.FunctionType(values[0].type, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)


def _step(emit: Any) -> Any:
    """Make a function (state, position, buffer, position) that hashes one block."""

    def emit_step(context: Any, builder: Any, kinds: Any, values: Any) -> None:
        state = typed_pointer(context, builder, kinds[:2], values[:2], _I8, DIGEST)
        block = typed_pointer(context, builder, kinds[2:], values[2:], _I8, BLOCK)
        emit(builder, state, block)

    return emitted(types.void, ANY, types.int64, ANY, types.int64, emit=emit_step)


# Ordinary instructions


def _word_at(builder: Any, start: Any, number: int) -> Any:
    place = builder.gep(start, [_I32(4 * number)])
    return builder.bitcast(place, _I32.as_pointer())


def _in_order(builder: Any, word: Any) -> Any:
    """Turn a big-endian word into one of the machine, or back."""
    return word if sys.byteorder == "big" else builder.bswap(word)


def _rotated(builder: Any, word: Any, bits: int) -> Any:
    return _call(builder, "llvm.fshl.i32", word, word, _I32(bits))


def _mixed(builder: Any, quarter: int, b: Any, c: Any, d: Any) -> Any:
    """Return the function of three words in a quarter of the rounds: choice, parity, majority."""
    if quarter == 0:
        return builder.xor(d, builder.and_(b, builder.xor(c, d)))
    if quarter == 2:
        return builder.or_(builder.and_(b, c), builder.and_(d, builder.or_(b, c)))
    return builder.xor(builder.xor(b, c), d)


def _emit_ordinary(builder: Any, state: Any, block: Any) -> None:
    words = [
        _in_order(builder, builder.load(_word_at(builder, block, number), align=1))
        for number in range(16)
    ]
    places = [_word_at(builder, state, number) for number in range(5)]
    before = [_in_order(builder, builder.load(place, align=1)) for place in places]
    a, b, c, d, e = before
    for number in range(_ROUNDS):
        if number >= 16:
            found = words[-16]
            for back in (14, 8, 3):
                found = builder.xor(found, words[-back])
            words = [*words[1:], _rotated(builder, found, 1)]
        quarter = number // _QUARTER
        added = builder.add(e, _I32(_CONSTANTS[quarter]))
        added = builder.add(added, words[number if number < 16 else 15])
        added = builder.add(added, _mixed(builder, quarter, b, c, d))
        a, b, c, d, e = (
            builder.add(added, _rotated(builder, a, 5)),
            a,
            _rotated(builder, b, 30),
            c,
            d,
        )
    for place, old, new in zip(places, before, (a, b, c, d, e), strict=True):
        builder.store(_in_order(builder, builder.add(old, new)), place, align=1)


# Instructions for SHA


def _four_at(builder: Any, start: Any, number: int) -> Any:
    """Return four words of big-endian bytes, the first one in the highest lane."""
    place = builder.gep(start, [_I32(16 * number)])
    loaded = builder.load(builder.bitcast(place, _BYTES.as_pointer()), align=1)
    return builder.bitcast(builder.shuffle_vector(loaded, loaded, _REVERSED), _WORDS)


def _emit_instructions(builder: Any, state: Any, block: Any) -> None:
    words = [_four_at(builder, block, number) for number in range(4)]
    before = abcd = _four_at(builder, state, 0)
    e_place = _word_at(builder, state, 4)
    nothing = ir.Constant(_WORDS, [0] * 4)
    e = builder.load(e_place, align=1)
    e_before = earlier = builder.insert_element(nothing, _in_order(builder, e), _I32(3))
    for number in range(_ROUNDS // 4):
        if number == 0:
            added = builder.add(earlier, words[0])
        else:
            added = _call(builder, "llvm.x86.sha1nexte", earlier, words[0])
        earlier = abcd
        kind = ir.FunctionType(_WORDS, [_WORDS, _WORDS, _I8])
        rounds = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sha1rnds4")
        abcd = builder.call(rounds, [abcd, added, _I8(4 * number // _QUARTER)])
        following = builder.xor(_call(builder, "llvm.x86.sha1msg1", words[0], words[1]), words[2])
        words = [*words[1:], _call(builder, "llvm.x86.sha1msg2", following, words[3])]
    last = _call(builder, "llvm.x86.sha1nexte", earlier, e_before)
    found = builder.bitcast(builder.add(abcd, before), _BYTES)
    place = builder.bitcast(state, _BYTES.as_pointer())
    builder.store(builder.shuffle_vector(found, found, _REVERSED), place, align=1)
    builder.store(_in_order(builder, builder.extract_element(last, _I32(3))), e_place, align=1)


_ordinary, _instructions = _step(_emit_ordinary), _step(_emit_instructions)


@outlined
def sha1_ordinary(state, to, buffer, at, count):
    """Hash blocks into the state at a position, with ordinary instructions."""
    for number in range(count):
        _ordinary(state, to, buffer, at + number * BLOCK)


@outlined
def sha1_instructions(state, to, buffer, at, count):
    """Hash blocks into the state at a position, with instructions for SHA."""
    for number in range(count):
        _instructions(state, to, buffer, at + number * BLOCK)


HAS_INSTRUCTIONS = X86_64 and all(map(target_has, ("sha", "ssse3")))
sha1_blocks = sha1_instructions if HAS_INSTRUCTIONS else sha1_ordinary
