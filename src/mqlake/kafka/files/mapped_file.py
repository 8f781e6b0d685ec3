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
    """

    def __init__(self, directory: OwnedDirectory, path: str, new_size: int) -> None:
        """Open a file; create it with `new_size` zero bytes if it is missing.

        Raises:
            DiskError: the system refused it.
        """
        self.path = path
        self.is_new = not directory.exists(path)
        if self.is_new:
            self._file = directory.create(path, new_size)
        else:
            self._file = directory.open_writable(path)
        self._view: memoryview | None = self._file.view()

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._file.size

    @property
    def buffer(self) -> memoryview:
        """The bytes of the file, read-only, with all that is written later.

        Raises:
            DiskError: the system refused to map the file since it was resized.
        """
        if self._view is None:
            self._view = self._file.view()
        return self._view

    def write(self, offset: int, data: bytes) -> None:
        """Put bytes at a position inside of the file.

        Raises:
            DiskError: the system refused it.
        """
        self._file.write(offset, data)

    def resize(self, size: int) -> None:
        """Cut the file or add zero bytes to it.

        Raises:
            DiskError: the system refused it; the file has its old size, and another try may
                succeed.
        """
        if size == self.size:
            return
        self._view = None  # Nobody may read the mapping beyond the new end.
        self._file.truncate(size)

    def flush(self) -> None:
        """Return once the bytes are on the disk.

        Raises:
            SyncError: the disk failed.
        """
        self._file.sync()

    def close(self) -> None:
        """Release the file."""
        self._view = None
        self._file.close()
