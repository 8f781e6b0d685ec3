"""A file that is written through a mapping, and changes its size."""

from __future__ import annotations

import mmap
import os
from pathlib import Path


class MappedFile:
    """An index file being written.

    Attributes:
        path: where it is.
        size: bytes of the file.
        buffer: the mapping; an empty one where the file is empty.
    """

    def __init__(self, path: Path, new_size: int) -> None:
        """Open a file; one that is not there is made with `new_size` zero bytes."""
        self.path = path
        self.is_new = not path.exists()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self.size = os.fstat(self._descriptor).st_size
        self.buffer: mmap.mmap | bytearray = bytearray()
        self._map()
        if self.is_new:
            self.resize(new_size)

    def resize(self, size: int) -> None:
        """Cut the file or add zero bytes to it."""
        if size == self.size:
            return
        self._unmap()
        os.truncate(self._descriptor, size)
        self.size = size
        self._map()

    def flush(self) -> None:
        """Return once the bytes are on the disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Let go of the file."""
        self._unmap()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _map(self) -> None:
        if self.size:
            self.buffer = mmap.mmap(self._descriptor, self.size)

    def _unmap(self) -> None:
        if isinstance(self.buffer, mmap.mmap):
            self.buffer.close()
        self.buffer = bytearray()
