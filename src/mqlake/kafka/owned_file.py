"""A file that this process appends to and cuts, and reads like any other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mqlake.errors import StoreError
from mqlake.storage.protocol import Buffer

_MAX_SIZE = 0x7FFFFFFF


class OwnedFile:
    """A `.log` or `.txnindex` file being written; a `ReadableFile` of what was written so far.

    Attributes:
        path: where it is.

    Raises:
        StoreError: more than 2^31 - 1 bytes, which positions in indexes cannot express.
    """

    def __init__(self, path: Path, *, preallocate: int = 0) -> None:
        self.path = path
        is_new = not path.exists()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._size = os.fstat(self._descriptor).st_size
        if is_new and preallocate:
            os.truncate(self._descriptor, preallocate)
            self._size = 0
        if self._size > _MAX_SIZE:
            os.close(self._descriptor)
            raise StoreError(f"{path}: {self._size} bytes, a segment has {_MAX_SIZE} at most")

    @property
    def size(self) -> int:
        """Bytes written, without what was preallocated."""
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from position `offset`, fewer only at the end."""
        return os.pread(self._descriptor, max(0, min(length, self._size - offset)), offset)

    def read_into(self, buffer: Buffer, offset: int) -> int:
        """Fill `buffer` from position `offset`; return the bytes read, fewer only at the end."""
        target = memoryview(buffer).cast("B")[: max(0, self._size - offset)]
        return os.preadv(self._descriptor, [target], offset)

    def view(self) -> memoryview:
        """Return the bytes, copied: a mapping must not outlive a cut."""
        return memoryview(self.read(0, self._size))

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the whole range: what was written has no holes."""
        if max(0, start) < min(end, self._size):
            yield max(0, start), min(end, self._size)

    def append(self, data: bytes) -> None:
        """Write bytes at the end.

        Raises:
            StoreError: the file would grow beyond 2^31 - 1 bytes.
        """
        if len(data) > _MAX_SIZE - self._size:
            raise StoreError(f"{self.path}: no room for {len(data)} bytes after {self._size}")
        done = 0
        while done < len(data):
            done += os.pwrite(self._descriptor, memoryview(data)[done:], self._size + done)
        self._size += len(data)

    def truncate(self, size: int) -> None:
        """Cut the file, and what was preallocated; not where there is nothing to cut."""
        if size > self._size:
            raise StoreError(f"{self.path}: cannot be cut to {size} bytes, has {self._size}")
        if size < os.fstat(self._descriptor).st_size:
            os.truncate(self._descriptor, size)
        self._size = size

    def flush(self) -> None:
        """Return once the bytes are on the disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
