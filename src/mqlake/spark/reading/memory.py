"""Keep memory from one Arrow batch to the next."""

from __future__ import annotations

from functools import cache

import numpy as np

_KEPT = 30 << 20
"""Bytes: the columns of a few batches."""


@cache
def keep_freed_memory() -> None:
    """Let the C library keep what batches free, since each fresh page costs a fault.

    glibc takes the size of what was mapped for itself and freed, up to 32 MiB, as a hint: it maps
    only what is larger, and keeps up to twice as much. Elsewhere this does nothing.
    """
    np.empty(_KEPT, np.uint8)
