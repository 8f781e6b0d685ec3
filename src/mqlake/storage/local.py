"""Files and directories of this machine."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mqlake.errors import DiskError, StoreError
from mqlake.storage import owner_lock
from mqlake.storage.protocol import Buffer, ReadableFile
from mqlake.storage.relative_path import check_path


class LocalFile:
    """A regular file, opened for reading; safe to use from several threads at once."""

    def __init__(self, path: Path, descriptor: int, size: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._size: int = size
        self._view: memoryview | None = None

    @property
    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        wanted = max(0, min(length, self._size - offset))
        if offset < 0:
            raise StoreError(f"{self._path}: cannot read at position {offset}")
        try:
            data = os.pread(self._descriptor, wanted, offset)
        except OSError as error:
            raise _disk_error(self._path, error) from error
        if len(data) == wanted or not data:
            return data
        # One call returns at most 2 GiB.
        return data + self.read(offset + len(data), wanted - len(data))

    def read_into(self, buffer: Buffer, offset: int) -> int:
        if offset < 0:
            raise StoreError(f"{self._path}: cannot read at position {offset}")
        wanted = min(len(buffer), max(0, self._size - offset))
        target, done = memoryview(buffer).cast("B"), 0
        with _one_line(self._path):
            while done < wanted:
                # One call returns at most 2 GiB.
                count = os.preadv(self._descriptor, [target[done:wanted]], offset + done)
                if count == 0:
                    break
                done += count
        return done

    def view(self) -> memoryview:
        if self._view is None:
            if self._size == 0:
                return memoryview(b"")
            with _one_line(self._path):
                mapped = mmap.mmap(self._descriptor, self._size, access=mmap.ACCESS_READ)
            self._view = memoryview(mapped)
        return self._view

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        at, end = max(0, start), min(end, self._size)
        while at < end:
            data, hole = self._next_data(at, end)
            if data >= end:
                return
            yield data, min(hole, end)
            at = hole

    def _next_data(self, at: int, end: int) -> tuple[int, int]:
        try:
            data = os.lseek(self._descriptor, at, os.SEEK_DATA)
            return data, os.lseek(self._descriptor, data, os.SEEK_HOLE)
        except OSError as error:
            # ENXIO: no data up to the end of the file. Anything else: holes cannot be asked for.
            return (end, end) if error.errno == errno.ENXIO else (at, end)

    def close(self) -> None:
        # The mapping goes when the last view of it does.
        self._view = None
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            # The descriptor is gone even if the system reports an error, and its number may be
            # another file's a moment later. Only `sync` says whether bytes are on the disk.
            with suppress(OSError):
                os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class LocalDirectory:
    """A directory of this machine, symbolic links followed."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(root)

    @property
    def root(self) -> Path:
        """The directory's own path."""
        return self._root

    def describe(self, path: str = "") -> str:
        return str(self._root / path)

    def names(self, path: str) -> list[str]:
        full = self._path(path)
        with _one_line(full):
            try:
                return sorted(os.listdir(full))  # noqa: PTH208 (a third of the time)
            except (FileNotFoundError, NotADirectoryError):
                return []

    def is_directory(self, path: str) -> bool:
        full = self._path(path)
        with _one_line(full):
            return full.is_dir()

    def exists(self, path: str) -> bool:
        full = self._path(path)
        with _one_line(full):
            return full.exists()

    def size(self, path: str) -> int:
        full = self._path(path)
        with _one_line(full):
            return full.stat().st_size

    def open(self, path: str) -> ReadableFile:
        full = self._path(path)
        with _one_line(full):
            # O_NONBLOCK: opening a named pipe must not wait for its writer.
            descriptor = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise StoreError(f"{full}: not a regular file")
        return LocalFile(full, descriptor, status.st_size)

    def make_durable(self, path: str) -> None:
        """Return once what anybody wrote to a file before the call is on the disk.

        Raises:
            DiskError: it is gone, or the disk failed.
        """
        full = self._path(path)
        with _one_line(full):
            descriptor = os.open(full, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def lock_holder(self, path: str) -> int | None:
        full = self._path(path)
        with _one_line(full):
            return owner_lock.holder(full)

    def _path(self, path: str) -> Path:
        return self._root / check_path(path)


@contextmanager
def _one_line(path: object) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise _disk_error(path, error) from error
    except ValueError as error:  # a mapping of more bytes than the file has
        raise StoreError(f"{path}: {error}") from error


def _disk_error(path: object, error: OSError) -> DiskError:
    return DiskError(f"{path}: {error.strerror or error}", error.errno or 0)
