"""Loads, stores and copies at any byte of an array, which Python's operators cannot express.

All take a contiguous array of uint8 and a position in bytes, unchecked: the kernels prove once per
record that what they load is within the array. The bounds-checked build checks each access.
Numbers are big-endian, as in all of RocketMQ's files.
"""

# pyright: basic
# Reason: Numba's extension interface and llvmlite carry no types.

from __future__ import annotations

import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from mqlake.kernels.jit import ANY, BOUNDS_CHECKED, emitted

BLOCK = 64
"""Bytes that one bit mask covers."""

_BIG_ENDIAN = sys.byteorder == "big"
_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_BYTES = ir.VectorType(_I8, BLOCK)
_ARRAY = types.Array(types.uint8, 1, "C")


def pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any, size: Any) -> Any:
    """Emit the address of byte `at`; `size` bytes from there on will be accessed."""
    view = context.make_array(array_type)(context, builder, array)
    if BOUNDS_CHECKED:
        size = size if isinstance(size, ir.Value) else _I64(size)
        (length,) = cgutils.unpack_tuple(builder, view.shape)
        last = builder.add(at, builder.sub(size, _I64(1)))
        with builder.if_then(builder.icmp_signed(">", size, _I64(0))):
            cgutils.do_boundscheck(context, builder, at, length)
            cgutils.do_boundscheck(context, builder, last, length)
    return builder.gep(view.data, [at])


def _emit_borrow(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    array = context.make_array(kinds[0])(context, builder, values[0])
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    return array._getvalue()


borrow = emitted(ANY, ANY, emit=_emit_borrow)
"""The same array without its owner, for kernels that keep no argument after they return.

When an array is passed to a function inside a kernel, Numba counts the reference, with two atomic
additions. An array without an owner needs no count, and LLVM removes all of it.
"""


def _emit_bytes_at(context: Any, builder: Any, _kinds: Any, values: Any) -> Any:
    address, length = values
    array = context.make_array(_ARRAY)(context, builder)
    array.data = builder.inttoptr(address, _I8.as_pointer())
    array.shape = cgutils.pack_array(builder, [length])
    array.strides = cgutils.pack_array(builder, [_I64(1)])
    array.itemsize, array.nitems = _I64(1), length
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()


bytes_at = emitted(_ARRAY, types.int64, types.int64, emit=_emit_bytes_at)
"""bytes_at(address, length): an array of so many bytes at an address, without an owner.

The caller of the kernel holds the memory until the kernel returns.
"""


def typed_pointer(context: Any, builder: Any, kinds: Any, values: Any, kind: Any, size: int) -> Any:
    """Emit the address of a `kind` of `size` bytes, at `values[1]` in the array `values[0]`."""
    address = pointer(context, builder, kinds[0], values[0], values[1], size)
    return builder.bitcast(address, kind.as_pointer())


def _load(bits: int, result: Any, *, signed: bool, swap: bool) -> Any:
    kind = ir.IntType(bits)

    def emit(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
        address = typed_pointer(context, builder, kinds, values, kind, bits // 8)
        value = builder.load(address, align=1)
        if swap and not _BIG_ENDIAN:
            value = builder.bswap(value)
        if bits == 64:
            return value
        return builder.sext(value, _I64) if signed else builder.zext(value, _I64)

    return emitted(result, ANY, types.int64, emit=emit)


load_u8 = _load(8, types.int64, signed=False, swap=False)
load_u16 = _load(16, types.int64, signed=False, swap=True)
load_u32 = _load(32, types.int64, signed=False, swap=True)
load_i32 = _load(32, types.int64, signed=True, swap=True)
load_i64 = _load(64, types.int64, signed=True, swap=True)
load_word = _load(64, types.uint64, signed=False, swap=False)
"""Eight bytes in the machine's order, for hashing and comparing."""


def _store(bits: int) -> Any:
    kind = ir.IntType(bits)

    def emit(context: Any, builder: Any, kinds: Any, values: Any) -> None:
        address = typed_pointer(context, builder, kinds, values, kind, bits // 8)
        number = builder.trunc(values[2], kind) if bits < 64 else values[2]
        if bits > 8 and not _BIG_ENDIAN:
            number = builder.bswap(number)
        builder.store(number, address, align=1)

    return emitted(types.void, ANY, types.int64, types.int64, emit=emit)


store_u8, store_i32, store_i64 = (_store(bits) for bits in (8, 32, 64))


def _emit_publish(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    address = typed_pointer(context, builder, kinds, values, _I32, 4)
    number = builder.trunc(values[2], _I32)
    builder.fence("release")
    builder.store(number if _BIG_ENDIAN else builder.bswap(number), address, align=1)


publish_i32 = emitted(types.void, ANY, types.int64, types.int64, emit=_emit_publish)
"""publish_i32(buffer, at, number): store a number after all that was stored before.

Neither the compiler nor the CPU moves an earlier store past it. A reader that finds the number,
such as the next process after a crash of this one, also finds all that was stored before.
"""


def _emit_copy(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    target, to, source, start, length = values
    cgutils.raw_memcpy(
        builder,
        pointer(context, builder, kinds[0], target, to, length),
        pointer(context, builder, kinds[2], source, start, length),
        length,
        1,
    )


copy = emitted(types.void, ANY, types.int64, ANY, types.int64, types.int64, emit=_emit_copy)
"""copy(target, to, source, start, length): bytes of one array into another.

A variable length makes this a call of the C library's memcpy, which knows the CPU.
"""


CHUNK = 32
"""Bytes that are copied at once for short stretches."""


def _emit_copy_chunk(context: Any, builder: Any, kinds: Any, values: Any) -> None:
    kind = ir.VectorType(_I8, CHUNK)
    target = typed_pointer(context, builder, kinds[:1], values[:2], kind, CHUNK)
    source = typed_pointer(context, builder, kinds[2:], values[2:], kind, CHUNK)
    builder.store(builder.load(source, align=1), target, align=1)


copy_chunk = emitted(types.void, ANY, types.int64, ANY, types.int64, emit=_emit_copy_chunk)
"""copy_chunk(target, to, source, start): copies CHUNK bytes, with one or two instructions."""


def _prefetch(*, write: bool) -> Any:
    def emit(context: Any, builder: Any, kinds: Any, values: Any) -> None:
        # Nothing is accessed: to prefetch past the end of the array does not fault.
        address = pointer(context, builder, kinds[0], values[0], values[1], 0)
        kind = ir.FunctionType(ir.VoidType(), [address.type, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        keep, data = _I32(3), _I32(1)
        builder.call(function, [address, _I32(int(write)), keep, data])

    return emitted(types.void, ANY, types.int64, emit=emit)


prefetch_read, prefetch_write = _prefetch(write=False), _prefetch(write=True)


def _mask(comparison: str) -> Any:
    undefined = ir.Constant(_BYTES, ir.Undefined)
    first_lane = ir.Constant(ir.VectorType(_I32, BLOCK), [0] * BLOCK)

    def emit(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
        address = typed_pointer(context, builder, kinds, values, _BYTES, BLOCK)
        byte = builder.insert_element(undefined, builder.trunc(values[2], _I8), _I32(0))
        wanted = builder.shuffle_vector(byte, undefined, first_lane)
        loaded = builder.load(address, align=1)
        return builder.bitcast(builder.icmp_unsigned(comparison, loaded, wanted), _I64)

    return emitted(types.uint64, ANY, types.int64, types.int64, emit=emit)


equal_mask, below_mask = _mask("=="), _mask("<")
"""mask(buffer, at, byte): bit i says whether byte `at + i` is equal to (below) a byte."""


def _emit_lowest_bit(_context: Any, builder: Any, _kinds: Any, values: Any) -> Any:
    return builder.cttz(values[0], _I1(1))


lowest_bit = emitted(types.int64, types.uint64, emit=_emit_lowest_bit)
"""The number of the lowest set bit of a number that is not 0."""
