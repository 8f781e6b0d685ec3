"""Freed memory goes back to the system: simulated disks leave gigabytes of it to the allocator.

Large blocks are never kept: the system hands out zeroed memory, where a block that was used before
is cleared byte by byte. Each store that opens asks for 22 MB of zeros, of which tests use little.
"""

from __future__ import annotations

import ctypes
import gc
import resource
from collections.abc import Generator
from pathlib import Path

import pytest

GROWTH = 512 << 20
"""Bytes by which a process may grow before its freed memory is given back."""

LARGE = 4 << 20
"""Bytes from which on a block is mapped by itself."""
_M_MMAP_THRESHOLD = -3

# The GNU C library has both.
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
_set_option = getattr(ctypes.CDLL(None), "mallopt", None)


class FreedMemory:
    """Gives freed memory back after a test that used much of it."""

    def __init__(self) -> None:
        if _set_option is not None:
            _set_option(_M_MMAP_THRESHOLD, LARGE)  # else it grows with what is freed
        self._before = resident()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None]:
        """Look at the process once the test has released what it used."""
        yield
        self.look()

    def look(self) -> None:
        """Give memory back if the process has grown much since that was last done."""
        if _trim is not None and resident() > self._before + GROWTH:
            gc.collect()
            _trim(0)
            self._before = resident()


def resident() -> int:
    """Return how many bytes of memory this process uses."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
