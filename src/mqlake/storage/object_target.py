"""Places that files are copied to: each appears whole, or not at all."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from mqlake.errors import StoreError
from mqlake.storage.arrow_fs import ArrowDirectory, one_line
from mqlake.storage.durable import TEMPORARY, make_directories, parent
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import Directory
from mqlake.storage.relative_path import check_path
from mqlake.storage.shown_url import shown_url


class Target(Protocol):
    """A place for objects. An object that is put replaces the one of its name atomically."""

    @property
    def directory(self) -> Directory:
        """The same place, for reading."""
        ...

    def put(self, path: str, size: int, chunks: Iterable[bytes]) -> None:
        """Write an object of `size` bytes; return once it is durable.

        Raises:
            StoreError: the place refused it; the old object is still there.
        """
        ...

    def remove(self, path: str) -> None:
        """Remove an object; fine if it is gone."""
        ...


class LocalTarget:
    """A directory of this machine."""

    def __init__(self, root: Path) -> None:
        self._directory = LocalOwnedDirectory.make(root)

    @property
    def directory(self) -> Directory:
        return self._directory

    def put(self, path: str, size: int, chunks: Iterable[bytes]) -> None:
        directory, temporary = self._directory, f"{check_path(path)}{TEMPORARY}"
        make_directories(directory, parent(path))
        file, at = directory.create(temporary, size), 0
        try:
            for chunk in chunks:
                file.write(at, chunk)
                at += len(chunk)
            file.sync()
        finally:
            file.close()
        directory.replace(temporary, path)
        directory.sync_directory(parent(path))

    def remove(self, path: str) -> None:
        self._directory.remove(path)


class ArrowTarget:
    """A directory of a `pyarrow.fs.FileSystem`.

    Args:
        is_atomic: an object that is written appears when it is closed, as S3's do; else it is
            written beside, and moved.
    """

    def __init__(self, filesystem: Any, root: str, name: str, *, is_atomic: bool) -> None:
        self._filesystem, self._root, self._name = filesystem, root.rstrip("/"), name
        self._is_atomic = is_atomic
        self.directory: Directory = ArrowDirectory(filesystem, root, name)

    def put(self, path: str, size: int, chunks: Iterable[bytes]) -> None:
        full = f"{self._root}/{check_path(path)}"
        written = full if self._is_atomic else f"{full}{TEMPORARY}"
        with one_line(f"{self._name}/{path}"):
            if not self._is_atomic:
                self._filesystem.create_dir(parent(full), recursive=True)
            with self._filesystem.open_output_stream(written) as stream:
                for chunk in chunks:
                    stream.write(chunk)
            if not self._is_atomic:
                with suppress(FileNotFoundError):
                    self._filesystem.delete_file(full)
                self._filesystem.move(written, full)
        if (there := self.directory.size(path)) != size:
            raise StoreError(f"{self._name}/{path}: {there} of {size} bytes were stored")

    def remove(self, path: str) -> None:
        with one_line(f"{self._name}/{path}"), suppress(FileNotFoundError):
            self._filesystem.delete_file(f"{self._root}/{check_path(path)}")


def open_target(place: str, settings: Mapping[str, str] | None = None) -> Target:
    """Return the target that a path or URL names.

    Raises:
        StoreError: a URL that pyarrow cannot open.
    """
    if place.startswith("file:"):
        return LocalTarget(Path(unquote(urlsplit(place).path)))
    if "://" not in place:
        return LocalTarget(Path(place))
    from mqlake.storage.object_stores import filesystem_of

    with one_line(place):
        filesystem, path = filesystem_of(place, settings or {})
    name = shown_url(place).rstrip("/")
    is_atomic = filesystem.type_name in ("s3", "gcs", "abfs")
    return ArrowTarget(filesystem, path, name, is_atomic=is_atomic)
