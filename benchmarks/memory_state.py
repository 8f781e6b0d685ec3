"""The state of the machine's memory in which every round that writes files begins."""

from __future__ import annotations

import mmap

BESIDES = 400
"""Bytes of all files that a message takes in a store, at most, beyond its body."""

DERIVED = 128
"""Bytes of queues and index for each message, at most."""


def stored(messages: float, body: int) -> int:
    """Return about how many bytes of files a store writes for messages with bodies of a size."""
    return int(messages) * (body + BESIDES)


def touch_memory(size: int) -> None:
    """Let the machine have so many bytes of memory at hand, for files that are written next.

    The host of a virtual machine takes unused memory back. To get a page of it again takes several
    times as long as to write the page, and which side of a benchmark pays for that is chance.
    """
    if size > 0:
        with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            for at in range(0, size, mmap.PAGESIZE):
                memory[at] = 1
