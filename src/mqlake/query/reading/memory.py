"""Keep memory from one Arrow batch to the next."""

from __future__ import annotations

from functools import cache

import numpy as np

_KEPT = 30 << 20
"""Bytes: the columns of a few batches."""


@cache
def keep_freed_memory() -> None:
    """Let the C library keep the memory of freed batches, because each fresh page costs a page
    fault.

    glibc takes the size of a freed block that was mapped, up to 32 MiB, as a hint: from then on it
    maps only larger blocks, and keeps up to twice as much. With other C libraries, this does
    nothing.
    """
    np.empty(_KEPT, np.uint8)
