"""A file that this process appends to and cuts, and reads like any other."""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.errors import StoreError
from mqlake.storage.protocol import Buffer, OwnedDirectory

_MAX_SIZE = 0x7FFFFFFF


class OwnedFile:
    """A `.log` or `.txnindex` file being written; a `ReadableFile` of what was written so far.

    Attributes:
        name: for messages.

    Raises:
        DiskError: the system refused it.
        StoreError: more than 2^31 - 1 bytes, which positions in indexes cannot express.
    """

    def __init__(self, directory: OwnedDirectory, path: str, *, preallocate: int = 0) -> None:
        self.name = directory.describe(path)
        self._directory, self._path = directory, path
        is_new = not directory.exists(path)
        if is_new:
            self._file = directory.create(path, preallocate)
        else:
            self._file = directory.open_writable(path)
        self._size = 0 if is_new else self._file.size
        if self._size > _MAX_SIZE:
            self._file.close()
            raise StoreError(
                f"{self.name}: the file has {self._size} bytes; the maximum of a segment is "
                f"{_MAX_SIZE}"
            )

    @property
    def size(self) -> int:
        """Bytes written, without what was preallocated."""
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from position `offset`, fewer only at the end."""
        return self._file.read(offset, max(0, min(length, self._size - offset)))

    def read_into(self, buffer: Buffer, offset: int) -> int:
        """Fill `buffer` from position `offset`; return the bytes read, fewer only at the end."""
        target = memoryview(buffer).cast("B")[: max(0, self._size - offset)]
        return self._file.read_into(target, offset)

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
            DiskError: the system refused it; the next append overwrites what was written.
            StoreError: the file would grow beyond 2^31 - 1 bytes.
        """
        if len(data) > _MAX_SIZE - self._size:
            raise StoreError(
                f"{self.name}: there is no room for {len(data)} bytes after {self._size}"
            )
        if room := self._file.size - self._size:
            self._file.write(self._size, data[:room])
        if len(data) > room:
            self._file.append(data[room:])
        self._size += len(data)

    def truncate(self, size: int) -> None:
        """Cut the file, and what was preallocated; do nothing if there is nothing to cut.

        Raises:
            DiskError: the system refused it; nothing has changed, and another try may succeed.
        """
        if size > self._size:
            raise StoreError(
                f"{self.name}: cannot be cut to {size} bytes, because it has only {self._size}"
            )
        if size < self._directory.size(self._path):
            self._file.truncate(size)
        self._size = size

    def flush(self) -> None:
        """Return once the bytes are on the disk.

        Raises:
            SyncError: the disk failed.
        """
        self._file.sync()

    def close(self) -> None:
        """Release the file."""
        self._file.close()
