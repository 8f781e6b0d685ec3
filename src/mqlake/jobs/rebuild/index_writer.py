"""Write an index file to disk while it is still being built in memory."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

from mqlake.formats import index_file

_CHUNK = 8 << 20
"""Bytes of entries that are written and synced in one call."""


class IndexFileWriter:
    """Write a new file from `data`, the memory in which an index file of `slots` slots is built.

    Existing entries never change, so a thread writes them while the processor inserts others; the
    slots and the header are written last. Bytes that were never used become a hole.
    """

    def __init__(self, path: Path, data: memoryview, slots: int) -> None:
        self._data = data
        self._entries = index_file.entry_at(slots, 0)
        self._given = self._entries
        self._beside = ThreadPoolExecutor(1)
        self._writes: list[Future[None]] = []
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o644)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._beside.shutdown(wait=True, cancel_futures=True)
        os.close(self._descriptor)

    def write_behind(self, used: int) -> None:
        """Write the entries that end at byte `used` or before, once there are enough of them."""
        if used - self._given >= _CHUNK:
            self._writes.append(self._beside.submit(self._write, self._given, used))
            self._given = used

    def complete(self, used: int) -> None:
        """Write the rest of the `used` bytes; return when the whole file is durable."""
        # The size is set first, so that the sync of the last write covers it.
        os.ftruncate(self._descriptor, len(self._data))
        for start, end in ((self._given, used), (0, self._entries)):
            self._writes.append(self._beside.submit(self._write, start, end))
        for write in self._writes:
            write.result()

    def _write(self, start: int, end: int) -> None:
        at = start
        while at < end:
            at += os.pwrite(self._descriptor, self._data[at:end], at)
        os.fdatasync(self._descriptor)
