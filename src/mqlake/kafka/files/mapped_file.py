"""An index file being written: read through a mapping, and of any size."""

from __future__ import annotations

from mqlake.storage.protocol import OwnedDirectory


class MappedFile:
    """An index file that this process changes.

    It is written by position rather than through the mapping: most of a new file is a hole, and the
    process would die if the disk had no room for a page of it.

    Attributes:
        path: in its directory.
        is_new: whether it was created when it was opened.
        size: bytes of the file.
        buffer: its bytes, read-only, with all that is written later.
    """

    def __init__(self, directory: OwnedDirectory, path: str, new_size: int) -> None:
        """Open a file; create it with `new_size` zero bytes if it is missing.

        Raises:
            DiskError: the system refused it.
        """
        self._directory, self.path = directory, path
        self.is_new = not directory.exists(path)
        if self.is_new:
            self._file = directory.create(path, new_size)
        else:
            self._file = directory.open_writable(path)
        self._map()

    def write(self, offset: int, data: bytes) -> None:
        """Put bytes at a position inside of the file.

        Raises:
            DiskError: the system refused it.
        """
        self._file.write(offset, data)

    def resize(self, size: int) -> None:
        """Cut the file or add zero bytes to it.

        Raises:
            DiskError: the system refused it.
        """
        if size == self.size:
            return
        self.close()
        try:
            self._directory.truncate(self.path, size)
        finally:
            self._file = self._directory.open_writable(self.path)
            self._map()

    def flush(self) -> None:
        """Return once the bytes are on the disk.

        Raises:
            SyncError: the disk failed.
        """
        self._file.sync()

    def close(self) -> None:
        """Let go of the file."""
        self.buffer = memoryview(b"")
        self._file.close()

    def _map(self) -> None:
        self.size = self._file.size
        self.buffer = self._file.view()
