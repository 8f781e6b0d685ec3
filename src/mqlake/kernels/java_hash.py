"""Java's String.hashCode over UTF-8 bytes (`mqlake.formats.java_string.hash_code`).

The hash of n units is u[0] * 31^(n-1) + … + u[n-1], modulo 2^32. Sixteen ASCII bytes are one
product of vectors. A hash can be continued: hash(a + b) = hash(a) * 31^len(b) + hash(b).
"""

# pyright: basic
# Reason: Numba's extension interface and llvmlite carry no types.

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from mqlake.kernels.jit import ANY, emitted, inlined, outlined
from mqlake.kernels.memory import typed_pointer
from mqlake.kernels.utf8 import MALFORMED, REPLACEMENT, decode, is_ascii

_STEP = 16
_BITS = 0xFFFFFFFF
_POWERS = np.array([pow(31, exponent, 1 << 32) for exponent in range(_STEP + 1)], np.int64)

_I8, _I32, _I64 = (ir.IntType(bits) for bits in (8, 32, 64))
_BYTES, _UNITS = ir.VectorType(_I8, _STEP), ir.VectorType(_I32, _STEP)
_PLACES = ir.Constant(_UNITS, list(range(_STEP)))
_WEIGHTS = ir.Constant(_UNITS, [pow(31, _STEP - 1 - place, 1 << 32) for place in range(_STEP)])


def _splat(builder: Any, value: Any) -> Any:
    undefined = ir.Constant(_UNITS, ir.Undefined)
    first = builder.insert_element(undefined, value, _I32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(_UNITS, [0] * _STEP))


def _emit_hash_of_last(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    array, end, count = values
    at = builder.sub(end, _I64(_STEP))
    address = typed_pointer(context, builder, kinds, (array, at), _BYTES, _STEP)
    units = builder.zext(builder.load(address, align=1), _UNITS)
    skipped = _splat(builder, builder.trunc(builder.sub(_I64(_STEP), count), _I32))
    counted = builder.icmp_unsigned(">=", _PLACES, skipped)
    units = builder.select(counted, units, ir.Constant(_UNITS, [0] * _STEP))
    kind = ir.FunctionType(_I32, [_UNITS])
    name = f"llvm.vector.reduce.add.v{_STEP}i32"
    reduce = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.zext(builder.call(reduce, [builder.mul(units, _WEIGHTS)]), _I64)


_hash_of_last = emitted(types.int64, ANY, types.int64, types.int64, emit=_emit_hash_of_last)
"""(buffer, end, count): the hash of the `count` <= 16 bytes before `end`; loads 16 of them."""


@outlined
def _hash_units(value, buffer, at, end):
    while at < end:
        code, length = decode(buffer, at, end)
        at += length
        if code == MALFORMED:
            code = REPLACEMENT
        if code > 0xFFFF:
            value = value * 31 + (0xD800 + (code - 0x10000 >> 10)) & _BITS
            code = 0xDC00 + (code & 0x3FF)
        value = value * 31 + code & _BITS
    return value


@inlined
def hash_text(value, buffer, at, end):
    """Return the hash of the text from `at` to `end`, continued from hash `value`, in 0 … 2^32-1.

    The buffer has at least 16 bytes before `at`, and SLACK after `end`.
    """
    if not is_ascii(buffer, at, end):
        return _hash_units(value, buffer, at, end)
    odd = end - at & _STEP - 1
    at += odd
    value = value * _POWERS[odd] + _hash_of_last(buffer, at, odd)
    while at < end:
        at += _STEP
        value = value * _POWERS[_STEP] + _hash_of_last(buffer, at, _STEP)
    return value & _BITS


@inlined
def signed(value):
    """Return a hash as Java's int."""
    return np.int64(np.int32(value))


@inlined
def index_key_hash(value):
    """Return a hash as the index file stores it (`mqlake.formats.java_string.index_key_hash`)."""
    value = abs(signed(value))
    return value if value <= 0x7FFFFFFF else np.int64(0)
