"""BLAKE2b with a key and a digest of 8 bytes, for kernels: `keyed_start`, `keyed_hash`.

A state is u8[64], the eight words of RFC 7693. The state after the key's block is the same for all
messages of a key: `keyed_start` computes it once. `hashlib.blake2b` is what the result must equal.
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

from mqlake.kernels.jit import ANY, emitted, inlined
from mqlake.kernels.memory import copy, load_i64, typed_pointer

BLOCK = 128
"""Bytes of a block."""
STATE = 64
"""Bytes of a state."""
KEY = 8
"""Bytes of a key, and of a digest."""

_I8, _I32, _I64 = (ir.IntType(bits) for bits in (8, 32, 64))
_ROUNDS = 12
_INITIAL = (
    0x6A09E667F3BCC908,
    0xBB67AE8584CAA73B,
    0x3C6EF372FE94F82B,
    0xA54FF53A5F1D36F1,
    0x510E527FADE682D1,
    0x9B05688C2B3E6C1F,
    0x1F83D9ABFB41BD6B,
    0x5BE0CD19137E2179,
)
_ORDERS = (
    "0123456789abcdef",
    "ea489fd61c02b753",
    "b8c052fdae367194",
    "7931dcbe265a40f8",
    "905724afe1bc683d",
    "2c6a0b834d75fe19",
    "c51fed4a0763928b",
    "db7ec13950f4862a",
    "6fe9b308c2d714a5",
    "a2847615fb9e3cd0",
)
"""The words of the message in each round, as hexadecimal digits; the last rounds begin again."""
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_PARAMETERS = 1 << 24 | 1 << 16 | KEY << 8 | KEY
"""Depth 1, fan-out 1, and the lengths of key and digest: XORed to the first initial word."""
_FIRST = np.frombuffer(
    b"".join(word.to_bytes(8, "little") for word in (_INITIAL[0] ^ _PARAMETERS, *_INITIAL[1:])),
    np.uint8,
)


def _word_at(builder: Any, start: Any, number: int) -> Any:
    place = builder.gep(start, [_I32(8 * number)])
    return builder.bitcast(place, _I64.as_pointer())


def _in_order(builder: Any, word: Any) -> Any:
    """Turn a little-endian word into one of the machine, or back."""
    return word if sys.byteorder == "little" else builder.bswap(word)


def _rotated(builder: Any, word: Any, bits: int) -> Any:
    kind = ir.FunctionType(_I64, [_I64, _I64, _I64])
    rotate = cgutils.get_or_insert_function(builder.module, kind, "llvm.fshr.i64")
    return builder.call(rotate, [word, word, _I64(bits)])


def _mix(builder: Any, words: list[Any], places: tuple[int, ...], message: tuple[Any, Any]) -> None:
    """Mix four words with two of the message (the function G)."""
    a, b, c, d = places
    for added, (first, second) in zip(message, ((32, 24), (16, 63)), strict=True):
        words[a] = builder.add(builder.add(words[a], words[b]), added)
        words[d] = _rotated(builder, builder.xor(words[d], words[a]), first)
        words[c] = builder.add(words[c], words[d])
        words[b] = _rotated(builder, builder.xor(words[b], words[c]), second)


def _step(*, is_last: bool) -> Any:
    """Make a function (state, position, buffer, position, total) that compresses one block; `total`
    are the bytes until its end.
    """

    def emit(context: Any, builder: Any, kinds: Any, values: Any) -> None:
        state = typed_pointer(context, builder, kinds[:2], values[:2], _I8, STATE)
        block = typed_pointer(context, builder, kinds[2:4], values[2:4], _I8, BLOCK)
        message, before = (
            [
                _in_order(builder, builder.load(_word_at(builder, start, number), align=1))
                for number in range(count)
            ]
            for start, count in ((block, 16), (state, 8))
        )
        words = [*before, *(_I64(word) for word in _INITIAL)]
        words[12] = builder.xor(words[12], values[4])
        if is_last:
            words[14] = builder.xor(words[14], _I64(-1))
        _mix_all(builder, words, message)
        for number, old in enumerate(before):
            new = builder.xor(old, builder.xor(words[number], words[number + 8]))
            builder.store(_in_order(builder, new), _word_at(builder, state, number), align=1)

    return emitted(types.void, ANY, types.int64, ANY, types.int64, types.int64, emit=emit)


def _mix_all(builder: Any, words: list[Any], message: list[Any]) -> None:
    for number in range(_ROUNDS):
        order = [int(digit, 16) for digit in _ORDERS[number % len(_ORDERS)]]
        for step, places in enumerate((*_COLUMNS, *_DIAGONALS)):
            pair = message[order[2 * step]], message[order[2 * step + 1]]
            _mix(builder, words, places, pair)


_compress, _compress_last = _step(is_last=False), _step(is_last=True)


@inlined
def keyed_start(state, key, block):
    """Fill the state after the block of a key.

    Args:
        key: u8[8].
        block: u8[128], overwritten.
    """
    copy(state, 0, _FIRST, 0, STATE)
    block[:] = 0
    copy(block, 0, key, 0, KEY)
    _compress(state, 0, block, 0, BLOCK)


@inlined
def keyed_hash(start, buffer, at, length, state, block):
    """Return the hash of the bytes from `at` on, at least one: the digest as a big-endian number.

    Args:
        start: u8[64], the state of `keyed_start`.
        state, block: u8[64] and u8[128], overwritten.
    """
    copy(state, 0, start, 0, STATE)
    done = 0
    while length - done > BLOCK:
        done += BLOCK
        _compress(state, 0, buffer, at + done - BLOCK, BLOCK + done)
    block[:] = 0
    copy(block, 0, buffer, at + done, length - done)
    _compress_last(state, 0, block, 0, BLOCK + length)
    return np.uint64(load_i64(state, 0))
