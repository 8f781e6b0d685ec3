"""Call a kernel past Numba's dispatcher, for kernels that are called once a message.

The dispatcher looks at the types of all arguments on each call, which takes 150 ns and more. The
compiled function itself takes 50 ns, and 6 to 35 for each argument.
"""

# pyright: basic
# Reason: Numba's dispatchers carry no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import typeof, types

INT = types.int64
DATA = types.Bytes(types.uint8, 1, "C")
"""The type of `bytes`."""
BYTES = types.Array(types.uint8, 1, "C")
"""The type of a writable array of bytes."""
READ_ONLY = types.Array(types.uint8, 1, "C", readonly=True)
"""The type of an array of bytes that nobody writes, such as one from `bytes`."""
BYTE_ROWS = types.Array(types.uint8, 2, "C")
"""The type of a writable u1[m, n]."""
INTS = types.Array(types.int32, 1, "C")
"""The type of a writable i4[n]."""
LONGS = types.Array(types.int64, 1, "C")
"""The type of a writable i8[n]."""
LONG_ROWS = types.Array(types.int64, 2, "C")
"""The type of a writable i8[m, n]."""
LONG_BLOCKS = types.Array(types.int64, 3, "C")
"""The type of a writable i8[l, m, n]."""
WORD: Any = types.uint64


def entry_point(kernel: Any, *kinds: Any) -> Callable[..., Any]:
    """Return the compiled function of a kernel for arguments of these types.

    The caller must pass no others: the function converts numbers, and does not check the rest. If
    Numba provides no such function, the result is the kernel itself, which checks.
    """
    found = kernel.compile(kinds) if hasattr(kernel, "compile") else None
    return found if callable(found) else kernel


def entry_point_for(kernel: Any, *arguments: object) -> Callable[..., Any]:
    """Return `entry_point` for arguments of the types that these have."""
    return entry_point(kernel, *map(typeof, arguments))
