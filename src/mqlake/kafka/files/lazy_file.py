"""A file that is opened on its first read, because a partition may have thousands of files."""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.errors import StoreError
from mqlake.storage.protocol import Buffer, Directory, ReadableFile

# Kafka's indexes have 10 MiB by default.
_LARGEST = 1 << 28


class LazyFile:
    """A `ReadableFile` with the size that it had when the object was created.

    After `close`, the next read opens it again. Several threads may use it; the file may then be
    open more than once.

    Raises:
        StoreError: the file does not exist. Every method raises it if the file was removed since.
    """

    def __init__(self, directory: Directory, path: str) -> None:
        self._directory = directory
        self._path = path
        self._file: ReadableFile | None = None
        self.size = directory.size(path)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from position `offset`, fewer only at the end."""
        return self._opened().read(offset, max(0, min(length, self.size - offset)))

    def read_into(self, buffer: Buffer, offset: int) -> int:
        """Fill `buffer` from position `offset`; return the bytes read, fewer only at the end."""
        target = memoryview(buffer).cast("B")[: max(0, self.size - offset)]
        return self._opened().read_into(target, offset)

    def view(self) -> memoryview:
        """Return the bytes, mapped if the storage supports it."""
        return self._opened().view()[: self.size]

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges between `start` and `end` that contain data, not holes, ascending."""
        return self._opened().data_ranges(start, min(end, self.size))

    def close(self) -> None:
        """Release the file until the next read."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _opened(self) -> ReadableFile:
        file = self._file
        if file is None:
            file = self._file = self._directory.open(self._path)
        return file


def read_whole(directory: Directory, path: str) -> bytes | None:
    """Return all bytes of an index or another small file, or None if it does not exist.

    Raises:
        StoreError: it cannot be read, or has more than 256 MiB.
    """
    if not directory.exists(path):
        return None
    file = directory.open(path)
    try:
        if file.size > _LARGEST:
            raise StoreError(
                f"{directory.describe(path)}: the file has {file.size} bytes; the maximum is "
                f"{_LARGEST}"
            )
        return file.read(0, file.size)
    finally:
        file.close()
