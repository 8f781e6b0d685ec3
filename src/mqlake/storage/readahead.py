"""Tell the system whether to read a mapped file ahead of what is accessed."""

from __future__ import annotations

import mmap
from contextlib import suppress


def set_readahead(mapped: memoryview, start: int, end: int, *, on: bool) -> None:
    """Read pages ahead of those that are accessed, as usual, or only these.

    It is advice: nothing happens if the bytes are not a mapped file, or if the system has no such
    advice or refuses it.

    Args:
        start: position of the first byte that this is about, a multiple of the page size.
        end: position after the last one.
    """
    file = mapped.obj
    if isinstance(file, mmap.mmap) and hasattr(mmap, "MADV_RANDOM"):
        with suppress(OSError):  # For example, the process has too many mappings to divide one.
            file.madvise(mmap.MADV_NORMAL if on else mmap.MADV_RANDOM, start, end - start)
