"""Hex digits of eight bytes, in a few vector instructions."""

# pyright: basic
# Reason: Numba's extension interface and llvmlite carry no types.

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from mqlake.kernels.jit import ANY, emitted
from mqlake.kernels.memory import typed_pointer

_BYTES, _DIGITS = ir.VectorType(ir.IntType(8), 8), ir.VectorType(ir.IntType(8), 16)
_PLACES = ir.VectorType(ir.IntType(32), 16)


def _emit(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    target = typed_pointer(context, builder, kinds[:1], values[:2], _DIGITS, 16)
    source = typed_pointer(context, builder, kinds[2:], values[2:], _BYTES, 8)
    loaded = builder.load(source, align=1)
    high = builder.lshr(loaded, ir.Constant(_BYTES, [4] * 8))
    low = builder.and_(loaded, ir.Constant(_BYTES, [0xF] * 8))
    in_turn = ir.Constant(_PLACES, [place // 2 + place % 2 * 8 for place in range(16)])
    digits = builder.shuffle_vector(high, low, in_turn)
    is_letter = builder.icmp_unsigned(">", digits, _all(9))
    first = builder.select(is_letter, _all(ord("A") - 10), _all(ord("0")))
    builder.store(builder.add(digits, first), target, align=1)


def _all(value: int) -> Any:
    return ir.Constant(_DIGITS, [value] * 16)


put_hex = emitted(types.void, ANY, types.int64, ANY, types.int64, emit=_emit)
"""put_hex(target, to, source, start): eight bytes as 16 upper-case digits."""
