"""Announce that kernels are being compiled, because the first use then takes long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

MESSAGE = "compiling kernels (once); this can take a minute"

_MARK = "first-use"
"""A file in the cache: the announcement was made."""


def tell_first_use(tell: Callable[[str], object]) -> None:
    """Call `tell` with `MESSAGE` if the kernels are not compiled and nobody has announced it."""
    from mqlake.kernels.jit import CACHE

    if CACHE is not None and is_first_use(CACHE):
        tell(MESSAGE)


def is_first_use(cache: Path) -> bool:
    """Return whether a cache has no machine code; True for only one caller in all processes."""
    if next(cache.rglob("*.nbi"), None) is not None:
        return False
    try:
        (cache / _MARK).touch(exist_ok=False)
    except OSError:
        return False
    return True
