"""Files of a lake table: on a file system that is mounted here, or on an object store.

pyarrow is imported late: options name tables before anything else is loaded.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from mqlake.storage.remote.arrow_fs import one_line
from mqlake.storage.remote.object_stores import filesystem_of

SCHEMES = ("s3", "gs", "abfss")
"""Object stores on which a table can be, by the schemes of its URLs."""

ALIASES = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}
"""Other schemes of URLs of the same stores."""

_MOST_BYTES = 1 << 20


class LakeFiles(msgspec.Struct, frozen=True):
    """The files of a table, by absolute paths or URLs.

    Attributes:
        settings: of the object store, by Hadoop's names; they may be secrets.
    """

    settings: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"LakeFiles({', '.join(self.settings)})"

    def create(self, path: str) -> Any:
        """Open a new file for writing; an object appears once it is closed."""
        if not is_url(path):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            return Path(path).open("xb")
        with one_line(path):
            filesystem, inner = filesystem_of(path, self.settings)
            return filesystem.open_output_stream(inner)

    def complete(self, path: str, file: Any) -> int:
        """Close a file; return its size once it is durable."""
        if not is_url(path):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            sync_directory(Path(path).parent)
            return Path(path).stat().st_size
        with one_line(path):
            file.close()
            filesystem, inner = filesystem_of(path, self.settings)
            return int(filesystem.get_file_info(inner).size)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        if not is_url(path):
            Path(path).unlink(missing_ok=True)
            return
        with one_line(path):
            from pyarrow.fs import FileType

            filesystem, inner = filesystem_of(path, self.settings)
            if filesystem.get_file_info(inner).type == FileType.File:
                filesystem.delete_file(inner)

    def parquet(self, path: str) -> Any:
        """Open a Parquet file."""
        from pyarrow import parquet

        if not is_url(path):
            return parquet.ParquetFile(path)
        with one_line(path):
            filesystem, inner = filesystem_of(path, self.settings)
            return parquet.ParquetFile(filesystem.open_input_file(inner), pre_buffer=True)

    def source(self, path: str) -> tuple[Any, str]:
        """Return the `pyarrow.fs.FileSystem` of a file, and its path there."""
        if not is_url(path):
            from pyarrow.fs import LocalFileSystem

            return LocalFileSystem(), path
        with one_line(path):
            return filesystem_of(path, self.settings)

    def read(self, path: str) -> bytes:
        """Return the content of a small file."""
        if not is_url(path):
            return Path(path).read_bytes()
        with one_line(path):
            filesystem, inner = filesystem_of(path, self.settings)
            with filesystem.open_input_stream(inner) as stream:
                return stream.read(_MOST_BYTES)

    def metadata(self, path: str) -> Any:
        """Return the metadata of a Parquet file."""
        with self.parquet(path) as opened:
            return opened.metadata

    def exists(self, directory: str) -> bool:
        """Return whether a directory exists, or an object below it."""
        if not is_url(directory):
            return Path(directory).exists()
        with one_line(directory):
            from pyarrow.fs import FileType

            filesystem, inner = filesystem_of(directory, self.settings)
            return filesystem.get_file_info(inner).type == FileType.Directory

    def walk(self, directory: str) -> Iterator[tuple[str, float]]:
        """Yield the files below a directory, and when each was written (seconds since 1970)."""
        if not is_url(directory):
            for path in Path(directory).rglob("*"):
                if path.is_file():
                    yield str(path), path.stat().st_mtime
            return
        with one_line(directory):
            from pyarrow.fs import FileSelector, FileType

            filesystem, inner = filesystem_of(directory, self.settings)
            selector = FileSelector(inner, allow_not_found=True, recursive=True)
            for found in filesystem.get_file_info(selector):
                if found.type == FileType.File:
                    below = found.path.removeprefix(inner)
                    yield f"{directory}{below}", found.mtime_ns / 1e9


def is_url(path: str) -> bool:
    """Return whether a path names an object of an object store."""
    return path.partition("://")[0] in SCHEMES


def sync_directory(path: Path) -> None:
    """Return once the names in a directory are durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
