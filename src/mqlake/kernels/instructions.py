"""Single instructions for checksums: blocks of 16 bytes, carry-less products, CRC steps.

A block is a vector register of 16 bytes: a pair of numbers would not stay in one register.
"""

# pyright: basic
# Reason: Numba's extension interface and llvmlite carry no types.

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, codegen
from numba.extending import models, register_model

from mqlake.kernels.jit import ANY, config, emitted
from mqlake.kernels.memory import typed_pointer

X86_64 = platform.machine().lower() in ("x86_64", "amd64")
AARCH64 = platform.machine().lower() in ("aarch64", "arm64")


class _BlockType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="mqlake.instructions.Block")


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


def _step(name: str, register: Any) -> Any:
    """Return a CRC step: (register, eight bytes) to register, all 64 bits wide in kernels."""

    def emit(builder: Any, crc: Any, word: Any) -> Any:
        narrow = crc if register is _I64 else builder.trunc(crc, register)
        result = _call(builder, name, register, narrow, word)
        return result if register is _I64 else builder.zext(result, _I64)

    return _operation(types.uint64, types.uint64, types.uint64, emit)


load_block = emitted(_block, ANY, types.int64, emit=_emit_load_block)
pair = _operation(_block, types.uint64, types.uint64, _emit_pair)
shift = _operation(_block, _block, types.uint64, _emit_shift)
add = _operation(_block, _block, _block, lambda builder, a, b: builder.xor(a, b))
half = _operation(
    types.uint64, _block, types.int64, lambda builder, a, i: builder.extract_element(a, i)
)
product_low = _operation(_block, _block, _block, _emit_product(0x00))
product_high = _operation(_block, _block, _block, _emit_product(0x11))
crc32_step_aarch64 = _step("llvm.aarch64.crc32x", _I32)
crc32c_step_aarch64 = _step("llvm.aarch64.crc32cx", _I32)
crc32c_step_x86 = _step("llvm.x86.sse42.crc32.64.64", _I64)


def target_has(feature: str) -> bool:
    """Return whether Numba compiles for a CPU with `feature`.

    Not whether this CPU has it. If LLVM compiles for a lesser CPU (NUMBA_CPU_NAME), an
    instruction beyond it does not fail to compile: it ends the process.
    """
    told = config.CPU_FEATURES
    features = codegen.get_host_cpu_features() if told is None else told
    return f"+{feature}" in features.split(",")
