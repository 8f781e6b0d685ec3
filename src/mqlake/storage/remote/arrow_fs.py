"""Directories that `pyarrow.fs` reaches: S3, HDFS, Google Cloud Storage, and others; read-only."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from mqlake.errors import StoreError
from mqlake.storage.protocol import ReadableFile
from mqlake.storage.relative_path import check_path
from mqlake.storage.remote.remote_file import RemoteFile
from mqlake.storage.shown_url import shown_url


def open_url(url: str, settings: Mapping[str, str] | None = None) -> ArrowDirectory:
    """Return the directory that a URL names.

    Args:
        settings: how to reach it, as `object_stores.filesystem_of` takes it.

    Raises:
        StoreError: pyarrow or a client is missing, or knows no such URL.
    """
    from mqlake.storage.remote.object_stores import filesystem_of

    with one_line(url):
        filesystem, path = filesystem_of(url, settings or {})
    return ArrowDirectory(filesystem, path, name=shown_url(url).rstrip("/"))


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
        with one_line(self.describe(path)):
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
        return self.open_part(path, self._regular(path).size)

    def open_part(self, path: str, size: int, stored: int | None = None) -> RemoteFile:
        """Open a file whose size is known.

        Args:
            size: bytes of the file.
            stored: bytes of it that are stored, as `RemoteFile` takes it.

        Raises:
            StoreError: it cannot be opened, or has another size.
        """
        name = self.describe(path)
        with one_line(name):
            source = self._filesystem.open_input_file(self._path(path))
            there, expected = source.size(), size if stored is None else stored
        if there != expected:
            source.close()
            raise StoreError(f"{name}: the file has {there} bytes, but {expected} are expected")

        def ranges(offset: int, length: int) -> bytes:
            with one_line(name):
                return source.read_at(length, offset)

        return RemoteFile(name, ranges, size, stored, source.close)

    def lock_holder(self, path: str) -> int | None:
        """Return None: no such place has POSIX locks."""
        check_path(path)
        return None

    def _regular(self, path: str) -> Any:
        from pyarrow.fs import FileType

        info = self._info(path)
        if info.type == FileType.NotFound:
            raise StoreError(f"{self.describe(path)}: the file does not exist")
        if info.type != FileType.File:
            raise StoreError(f"{self.describe(path)}: not a regular file")
        return info

    def _info(self, path: str) -> Any:
        full = self._path(path)
        with one_line(self.describe(path)):
            return self._filesystem.get_file_info(full)

    def _path(self, path: str) -> str:
        return f"{self._root}/{check_path(path)}".rstrip("/")


@contextmanager
def one_line(name: str) -> Generator[None]:
    """Turn what pyarrow raises into a `StoreError` of one line that names the file, or the URL."""
    shown = shown_url(name)
    try:
        from pyarrow import ArrowException
    except ImportError:
        raise StoreError(f"{shown}: URLs need pyarrow: pip install 'mqlake[parquet]'") from None
    try:
        yield
    except (OSError, ValueError, ArrowException) as error:
        reason = " ".join(str(error).replace(name, shown).split())
        raise StoreError(f"{shown}: {reason}") from error
