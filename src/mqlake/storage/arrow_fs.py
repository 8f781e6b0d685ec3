"""Directories that `pyarrow.fs` reaches: S3, HDFS, Google Cloud Storage, and others; read-only."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

import mmap
import tempfile
import weakref
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from mqlake.errors import StoreError
from mqlake.storage.protocol import Buffer, ReadableFile
from mqlake.storage.relative_path import check_path

_CHUNK = 8 << 20
"""Bytes of a file that are in memory at once while it is brought here."""

_ZEROS = bytes(_CHUNK)


def open_url(url: str) -> ArrowDirectory:
    """Return the directory of a URL that `pyarrow.fs.FileSystem.from_uri` knows.

    Raises:
        StoreError: pyarrow is missing, or knows no such URL.
    """
    try:
        from pyarrow.fs import FileSystem
    except ImportError:
        raise StoreError(f"{url}: URLs need pyarrow: pip install 'mqlake[spark]'") from None
    with _one_line(url):
        filesystem, path = FileSystem.from_uri(url)
    return ArrowDirectory(filesystem, path, name=url.rstrip("/"))


class ArrowFile:
    """A file behind a `pyarrow.fs.FileSystem`.

    Reads ask for just the bytes that are wanted. `view` has no way to do so: it brings the whole
    file once to a temporary file without a name, on the disk of this machine, and maps that.
    """

    def __init__(self, name: str, source: Any, size: int) -> None:
        self._name, self._source, self._size = name, source, size
        self._view: memoryview | None = None
        self._close = weakref.finalize(self, source.close)

    @property
    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        if offset < 0:
            raise StoreError(f"{self._name}: cannot read at position {offset}")
        length = max(0, min(length, self._size - offset))
        with _one_line(self._name):
            return self._source.read_at(length, offset) if length else b""

    def read_into(self, buffer: Buffer, offset: int) -> int:
        target, done = memoryview(buffer).cast("B"), 0
        while done < len(target):
            data = self.read(offset + done, min(_CHUNK, len(target) - done))
            if not data:
                break
            target[done : done + len(data)] = data
            done += len(data)
        return done

    def view(self) -> memoryview:
        if self._view is None:
            if self._size == 0:
                return memoryview(b"")
            with _one_line(self._name):
                self._view = memoryview(self._bring())
        return self._view

    def _bring(self) -> mmap.mmap:
        with tempfile.TemporaryFile() as local:
            local.truncate(self._size)
            for at in range(0, self._size, _CHUNK):
                data = self.read(at, _CHUNK)
                if data != _ZEROS:  # what is left out is a hole, and reads as zeros
                    local.seek(at)
                    local.write(data)
            local.flush()
            return mmap.mmap(local.fileno(), self._size, access=mmap.ACCESS_READ)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        start, end = max(0, start), min(end, self._size)
        if start < end:
            yield start, end

    def close(self) -> None:
        self._view = None
        self._close()


class ArrowDirectory:
    """A directory of a `pyarrow.fs.FileSystem`; `name` is what messages call it."""

    def __init__(self, filesystem: Any, root: str, name: str | None = None) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")
        self._name = self._root if name is None else name

    def describe(self, path: str = "") -> str:
        return f"{self._name}/{path}" if path else self._name

    def names(self, path: str) -> list[str]:
        from pyarrow.fs import FileSelector

        if not self.is_directory(path):
            return []
        selector = FileSelector(self._path(path), allow_not_found=True)
        with _one_line(self.describe(path)):
            return sorted(info.base_name for info in self._filesystem.get_file_info(selector))

    def is_directory(self, path: str) -> bool:
        from pyarrow.fs import FileType

        return self._info(path).type == FileType.Directory

    def exists(self, path: str) -> bool:
        from pyarrow.fs import FileType

        return self._info(path).type != FileType.NotFound

    def size(self, path: str) -> int:
        return self._regular(path).size

    def open(self, path: str) -> ReadableFile:
        info = self._regular(path)
        with _one_line(self.describe(path)):
            source = self._filesystem.open_input_file(self._path(path))
            return ArrowFile(self.describe(path), source, info.size)

    def lock_holder(self, path: str) -> int | None:
        """Return None: no such place has POSIX locks."""
        check_path(path)
        return None

    def _regular(self, path: str) -> Any:
        from pyarrow.fs import FileType

        info = self._info(path)
        if info.type == FileType.NotFound:
            raise StoreError(f"{self.describe(path)}: no such file")
        if info.type != FileType.File:
            raise StoreError(f"{self.describe(path)}: not a regular file")
        return info

    def _info(self, path: str) -> Any:
        full = self._path(path)
        with _one_line(self.describe(path)):
            return self._filesystem.get_file_info(full)

    def _path(self, path: str) -> str:
        return f"{self._root}/{check_path(path)}".rstrip("/")


@contextmanager
def _one_line(name: str) -> Generator[None]:
    from pyarrow import ArrowException

    try:
        yield
    except (OSError, ValueError, ArrowException) as error:
        reason = " ".join(str(error).split())
        raise StoreError(f"{name}: {reason}") from error
