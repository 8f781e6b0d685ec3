"""How kernels are compiled: two decorators, for entry points and for what is inlined into them."""

# pyright: basic
# Reason: Numba's decorators carry no types.

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import llvmlite
import numba
from numba import config, njit

from mqlake.dispatch.cache import cache_directory

F = TypeVar("F", bound=Callable[..., Any])

BOUNDS_CHECKED = os.environ.get("MQLAKE_BOUNDSCHECK") == "1"
"""Check each load and store, `memory`'s included; an IndexError says that a kernel is wrong."""

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": BOUNDS_CHECKED}
_CACHE = cache_directory(
    (
        numba.__version__,
        llvmlite.__version__,
        f"bounds checked: {BOUNDS_CHECKED}",
        f"cpu: {config.CPU_NAME} {config.CPU_FEATURES} {config.OPT}",
    )
)


def kernel(function: F) -> F:
    """Compile an entry point on its first call, or load it from the cache."""
    # Numba reads its setting here and only here. Ours must not move the caches of others.
    theirs, config.CACHE_DIR = config.CACHE_DIR, str(_CACHE or "")
    try:
        return njit(cache=_CACHE is not None, **_OPTIONS)(function)
    finally:
        config.CACHE_DIR = theirs


def inlined(function: F) -> F:
    """Compile a part of kernels into each of its callers.

    A call that is not inlined, and passes an array, costs two atomic reference counts.
    """
    return njit(forceinline=True, **_OPTIONS)(function)


def outlined(function: F) -> F:
    """Compile a rare part of kernels once a kernel, away from the hot path."""
    return njit(**_OPTIONS)(function)
