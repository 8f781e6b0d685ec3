"""Keep the arguments of a kernel in memory, so that it is called with their address alone.

Python unpacks each array that it passes to a kernel, for a quarter of a microsecond. Kernels that
are called for every message, or with dozens of arrays, would do little else.
"""

# pyright: basic
# Reason: Numba's extension interface and llvmlite carry no types.

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import typeof, types
from numba.core import cgutils

from mqlake.kernels.jit import ANY, brief_kernel, emitted

_SIZE: Final = 1 << 14
"""Bytes for the kept arguments of one kernel."""


def tuple_kind(*kinds: Any, of: type | None = None) -> Any:
    """Return the type of a tuple of values of these types; `of`: of a `NamedTuple`."""
    return types.BaseTuple.from_types(kinds, of)


def kept_arguments(kind: Any) -> Any:
    """Return a function of kernels: an address → the tuple of this type that is kept there.

    Its arrays have no owner, as those of `borrow`: whoever calls the kernel holds them.
    """

    def emit(context: Any, builder: Any, _kinds: Any, values: Any) -> Any:
        pointer = context.get_value_type(kind).as_pointer()
        return _load(context, builder, kind, builder.inttoptr(values[0], pointer))

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
        self._memory = np.zeros(_SIZE, np.uint8)
        self.address: int = self._memory.ctypes.data

    def keep(self, values: tuple[Any, ...]) -> None:
        """Let the next calls of the kernel have these arguments.

        Raises:
            TypeError: they have other types: the kernel would read something else.
        """
        if typeof(values) != self._kind:
            raise TypeError(f"arguments of another type: {typeof(values)}, not {self._kind}")
        _keep(values, self.address)


def _is_tuple(kind: Any) -> bool:
    return isinstance(kind, types.BaseTuple)


def _load(context: Any, builder: Any, kind: Any, pointer: Any) -> Any:
    if not _is_tuple(kind):
        return builder.load(pointer)
    # Part by part: LLVM is slow with a load of hundreds of words.
    parts = [
        _load(context, builder, part, cgutils.gep_inbounds(builder, pointer, 0, place))
        for place, part in enumerate(kind.types)
    ]
    return context.make_tuple(builder, kind, parts)


def _store(context: Any, builder: Any, kind: Any, value: Any, pointer: Any) -> None:
    if _is_tuple(kind):
        for place, part in enumerate(kind.types):
            at = cgutils.gep_inbounds(builder, pointer, 0, place)
            _store(context, builder, part, builder.extract_value(value, place), at)
        return
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        value = array._getvalue()
    builder.store(value, pointer)


def _emit_store(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    kind = context.get_value_type(kinds[0])
    assert context.get_abi_sizeof(kind) <= _SIZE
    _store(context, builder, kinds[0], values[0], builder.inttoptr(values[1], kind.as_pointer()))
    return context.get_dummy_value()


_store_at = emitted(types.void, ANY, types.int64, emit=_emit_store)


@brief_kernel
def _keep(values, address):
    _store_at(values, address)
