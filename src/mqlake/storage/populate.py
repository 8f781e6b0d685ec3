"""Bring pages of a mapped file into memory before they are written."""

from __future__ import annotations

import ctypes
from threading import Thread
from typing import Any

_POPULATE_READ = 22
"""Linux 5.14 and later: `MADV_POPULATE_READ`. To write would cost less later, but a sync in between
would write all of it."""

_PIECE = 512 << 10
"""Between two of them other threads may change what is mapped."""


def populate_soon(mapping: memoryview, start: int, length: int) -> None:
    """Let a thread bring pages into memory that are going to be written.

    Who writes them then does not wait for the system to find memory and to clear it. Does nothing
    where the system cannot, or refuses: it is only sooner.

    Args:
        mapping: of a file, writable; kept until it is done.
        start: in it, where a page begins.
        length: bytes. The disk has room for them.
    """
    if _madvise is not None:
        Thread(target=_populate, args=(mapping, start, length), daemon=True).start()


def _populate(mapping: memoryview, start: int, length: int) -> None:
    first = ctypes.c_char.from_buffer(mapping, start)
    address = ctypes.addressof(first)
    for at in range(0, length, _PIECE):
        size = min(_PIECE, length - at)
        if _madvise(ctypes.c_void_p(address + at), ctypes.c_size_t(size), _POPULATE_READ):
            return


def _system_call() -> Any:
    try:
        return ctypes.CDLL(None).madvise
    except (AttributeError, OSError, TypeError):
        return None


_madvise = _system_call()
