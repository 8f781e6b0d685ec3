"""Loads, stores and copies at any byte of an array: what Python's operators cannot say.

All take a contiguous array of uint8 and a position in bytes, and trust it: the kernels prove once a
record that what they load lies within the array. The bounds-checked build checks each access.
Numbers are big-endian, as all of RocketMQ's files are.
"""

# pyright: basic
# Reason: Numba's extension interface and llvmlite carry no types.

from __future__ import annotations

import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mqlake.dispatch.compiled.jit import BOUNDS_CHECKED

BLOCK = 64
"""Bytes that one bit mask covers."""

SLACK = BLOCK
"""Bytes that a buffer must have behind its last valid one, since whole blocks are loaded."""

_BIG_ENDIAN = sys.byteorder == "big"
_I1, _I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
_BYTES = ir.VectorType(_I8, BLOCK)


def pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any, size: Any) -> Any:
    """Emit the address of byte `at`; `size` bytes from there on will be touched."""
    view = context.make_array(array_type)(context, builder, array)
    if BOUNDS_CHECKED:
        size = size if isinstance(size, ir.Value) else _I64(size)
        (length,) = cgutils.unpack_tuple(builder, view.shape)
        last = builder.add(at, builder.sub(size, _I64(1)))
        with builder.if_then(builder.icmp_signed(">", size, _I64(0))):
            cgutils.do_boundscheck(context, builder, at, length)
            cgutils.do_boundscheck(context, builder, last, length)
    return builder.gep(view.data, [at])


def _load(bits: int, result: Any, *, signed: bool, swap: bool = True) -> Any:
    kind = ir.IntType(bits)

    @intrinsic
    def load(context, array, at):
        def generate(context, builder, signature, values):
            address = pointer(context, builder, signature.args[0], *values, bits // 8)
            value = builder.load(builder.bitcast(address, kind.as_pointer()), align=1)
            if swap and bits > 8 and not _BIG_ENDIAN:
                value = builder.bswap(value)
            if bits < 64:
                value = builder.sext(value, _I64) if signed else builder.zext(value, _I64)
            return value

        return result(array, types.int64), generate

    return load


load_u8 = _load(8, types.int64, signed=False)
load_u16 = _load(16, types.int64, signed=False)
load_u32 = _load(32, types.int64, signed=False)
load_i32 = _load(32, types.int64, signed=True)
load_i64 = _load(64, types.int64, signed=True)
load_word = _load(64, types.uint64, signed=False, swap=False)
"""Eight bytes in the machine's order, for hashing and comparing."""


def _store(bits: int) -> Any:
    kind = ir.IntType(bits)

    @intrinsic
    def store(context, array, at, value):
        def generate(context, builder, signature, values):
            address = pointer(context, builder, signature.args[0], *values[:2], bits // 8)
            number = builder.trunc(values[2], kind) if bits < 64 else values[2]
            if bits > 8 and not _BIG_ENDIAN:
                number = builder.bswap(number)
            builder.store(number, builder.bitcast(address, kind.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int64), generate

    return store


store_u8, store_i32, store_i64 = (_store(bits) for bits in (8, 32, 64))


@intrinsic
def copy(context, target, to, source, start, length):
    """Copy `length` bytes from `source[start]` on to `target[to]` on; the two must not overlap.

    A variable length makes this a call of the C library's memcpy, which knows the CPU.
    """

    def generate(context, builder, signature, values):
        target, to, source, start, length = values
        cgutils.raw_memcpy(
            builder,
            pointer(context, builder, signature.args[0], target, to, length),
            pointer(context, builder, signature.args[2], source, start, length),
            length,
            1,
        )
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


def _prefetch(*, write: bool) -> Any:
    @intrinsic
    def prefetch(context, array, at):
        def generate(context, builder, signature, values):
            address = pointer(context, builder, signature.args[0], *values, 1)
            kind = ir.FunctionType(ir.VoidType(), [address.type, _I32, _I32, _I32])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            keep, data = _I32(3), _I32(1)
            builder.call(function, [address, _I32(int(write)), keep, data])
            return context.get_dummy_value()

        return types.void(array, types.int64), generate

    return prefetch


prefetch_read, prefetch_write = _prefetch(write=False), _prefetch(write=True)


def _mask(comparison: str) -> Any:
    @intrinsic
    def mask(context, array, at, byte):
        def generate(context, builder, signature, values):
            address = pointer(context, builder, signature.args[0], *values[:2], BLOCK)
            loaded = builder.load(builder.bitcast(address, _BYTES.as_pointer()), align=1)
            first = builder.insert_element(
                ir.Constant(_BYTES, ir.Undefined), builder.trunc(values[2], _I8), _I32(0)
            )
            lanes = ir.Constant(ir.VectorType(_I32, BLOCK), [0] * BLOCK)
            wanted = builder.shuffle_vector(first, ir.Constant(_BYTES, ir.Undefined), lanes)
            return builder.bitcast(builder.icmp_unsigned(comparison, loaded, wanted), _I64)

        return types.uint64(array, types.int64, types.int64), generate

    return mask


equal_mask, below_mask = _mask("=="), _mask("<")
"""Bit i says whether byte `at + i` is equal to (below) a byte; 64 bytes at once."""


@intrinsic
def lowest_bit(context, mask):
    """Return the number of the lowest set bit; `mask` is not 0."""

    def generate(context, builder, signature, values):
        return builder.cttz(values[0], _I1(1))

    return types.int64(types.uint64), generate
