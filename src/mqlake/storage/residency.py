"""Ask the system which pages of a mapped file are in memory."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

_PAGE = mmap.PAGESIZE


def is_in_memory(address: int, size: int) -> bool:
    """Return whether all pages of mapped memory are in memory, so that reading them waits for no
    disk.

    True where the system does not tell.

    Args:
        address: of the first byte.
        size: bytes, at least 1.
    """
    if _mincore is None:
        return True
    start = address - address % _PAGE
    count = (address + size - 1 - start) // _PAGE + 1
    flags = (ctypes.c_ubyte * count)()
    failed = _mincore(ctypes.c_void_p(start), ctypes.c_size_t(count * _PAGE), flags)
    return bool(failed) or all(flag & 1 for flag in flags)


def _system_call() -> Any:
    try:
        return ctypes.CDLL(None).mincore
    except (AttributeError, OSError, TypeError):
        return None


_mincore = _system_call()
