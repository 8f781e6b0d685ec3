"""Keep the arguments of a kernel in memory, so that it is called with their address alone.

Python unpacks each array that it passes to a kernel, for a quarter of a microsecond. Kernels that
are called for every message, or with dozens of arrays, would do little else.

What is kept are words of 8 bytes, one after another: of each array its address and its shape, of
each number its value, and of each tuple its parts.
"""

# pyright: basic
# Reason: Numba's extension interface and llvmlite carry no types.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils

from mqlake.kernels.jit import emitted

_WORDS: Final = 1 << 10
"""Room for the kept arguments of one kernel."""
_BITS: Final = 64
_I32, _I64 = ir.IntType(32), ir.IntType(_BITS)


def tuple_kind(*kinds: Any, of: type | None = None) -> Any:
    """Return the type of a tuple of values of these types; `of`: of a `NamedTuple`.

    The types are those of arrays without gaps, of 64-bit integers, and of such tuples.
    """
    return types.BaseTuple.from_types(kinds, of)


def kept_arguments(kind: Any) -> Any:
    """Return a function of kernels: an address → the tuple of this type that is kept there.

    Its arrays have no owner, as those of `borrow`: whoever calls the kernel holds them.
    """

    def emit(context: Any, builder: Any, _kinds: Any, values: Any) -> Any:
        words = builder.inttoptr(values[0], _I64.as_pointer())
        places = iter(range(_WORDS))

        def word() -> Any:
            return builder.load(builder.gep(words, [_I32(next(places))]))

        return _load(context, builder, kind, word)

    return emitted(kind, types.int64, emit=emit)


class KeptArguments:
    """Arguments that a kernel loads by `kept_arguments`.

    The arrays are not held: a file that was mapped could otherwise not be freed. At each call of
    the kernel, all of them must exist.

    Attributes:
        address: what the kernel is called with.

    Args:
        kind: the type of all tuples that will be kept, by `tuple_kind`.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._memory = np.zeros(_WORDS, np.uint64)
        self.address: int = self._memory.ctypes.data

    def keep(self, values: tuple[Any, ...]) -> None:
        """Let the next calls of the kernel have these arguments.

        Raises:
            TypeError: they have other types: the kernel would read something else.
        """
        if typeof(values) != self._kind:
            raise TypeError(f"arguments of another type: {typeof(values)}, not {self._kind}")
        words = [word % (1 << _BITS) for word in _words(values)]
        self._memory[: len(words)] = words


def _words(value: Any) -> Iterator[int]:
    """Yield the words that are kept of a value."""
    if isinstance(value, tuple):
        for part in value:
            yield from _words(part)
    elif isinstance(value, np.ndarray):
        yield value.ctypes.data
        yield from value.shape
    else:
        yield int(value)


def _load(context: Any, builder: Any, kind: Any, word: Any) -> Any:
    """Emit a value of a type, whose words come next."""
    if _is_tuple(kind):
        parts = [_load(context, builder, part, word) for part in kind.types]
        return context.make_tuple(builder, kind, parts)
    if not isinstance(kind, types.Array):
        assert kind.bitwidth == _BITS
        return word()
    assert kind.layout == "C"
    array = context.make_array(kind)(context, builder)
    item = context.get_data_type(kind.dtype)
    array.data = builder.inttoptr(word(), item.as_pointer())
    shape = [word() for _ in range(kind.ndim)]
    size = array.itemsize = _I64(context.get_abi_sizeof(item))
    strides: list[Any] = []
    for length in reversed(shape):
        strides.insert(0, size)
        size = builder.mul(size, length)
    array.shape, array.strides = (cgutils.pack_array(builder, each) for each in (shape, strides))
    array.nitems = builder.sdiv(size, array.itemsize)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()


def _is_tuple(kind: Any) -> bool:
    return isinstance(kind, types.BaseTuple)
