"""Tell the system whether to read a mapped file ahead of what is accessed."""

from __future__ import annotations

import mmap


def set_readahead(mapped: memoryview, *, on: bool) -> None:
    """Read pages ahead of those that are accessed, as usual, or only these.

    It does nothing if the bytes are not a mapped file, or if the system has no such advice.
    """
    file = mapped.obj
    if isinstance(file, mmap.mmap) and hasattr(mmap, "MADV_RANDOM"):
        file.madvise(mmap.MADV_NORMAL if on else mmap.MADV_RANDOM)
