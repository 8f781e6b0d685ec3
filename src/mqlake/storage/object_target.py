"""Places that files are copied to: each appears whole, or not at all."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from mqlake.storage.durable import TEMPORARY, make_directories, parent
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import Directory
from mqlake.storage.relative_path import check_path
from mqlake.storage.remote.arrow_fs import ArrowDirectory, one_line
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
        replace: moves a file over another atomically; without it, the other is removed first.
    """

    def __init__(
        self,
        filesystem: Any,
        root: str,
        name: str,
        *,
        is_atomic: bool,
        replace: Callable[[str, str], None] | None = None,
    ) -> None:
        self._filesystem, self._root, self._name = filesystem, root.rstrip("/"), name
        self._is_atomic, self._replace = is_atomic, replace or self._remove_and_move
        self.directory: Directory = ArrowDirectory(filesystem, root, name)

    def put(self, path: str, size: int, chunks: Iterable[bytes]) -> None:
        full = f"{self._root}/{check_path(path)}"
        written = full if self._is_atomic else f"{full}{TEMPORARY}"
        with one_line(f"{self._name}/{path}"):
            if not self._is_atomic:
                self._filesystem.create_dir(parent(full), recursive=True)
            is_new = not self._is_atomic or not self.directory.exists(path)
            try:
                self._write(written, size, chunks)
            except BaseException:
                # pyarrow cannot abandon an upload: closing it makes an object of what there is. An
                # older object of that name stays if the server refused the new one.
                if is_new:
                    with suppress(OSError):
                        self._filesystem.delete_file(written)
                raise
            if not self._is_atomic:
                self._replace(written, full)

    def _write(self, full: str, size: int, chunks: Iterable[bytes]) -> None:
        with self._filesystem.open_output_stream(full) as stream:
            for chunk in chunks:
                stream.write(chunk)
        there = self._filesystem.get_file_info(full).size
        if there != size:
            raise OSError(f"only {there} of {size} bytes were stored")

    def _remove_and_move(self, written: str, full: str) -> None:
        with suppress(FileNotFoundError):
            self._filesystem.delete_file(full)
        self._filesystem.move(written, full)

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
    from mqlake.storage.remote.hdfs import atomic_replace
    from mqlake.storage.remote.object_stores import filesystem_of

    with one_line(place):
        filesystem, path = filesystem_of(place, settings or {})
    name = shown_url(place).rstrip("/")
    is_atomic = filesystem.type_name in ("s3", "gcs", "abfs")
    replace = atomic_replace(filesystem)
    return ArrowTarget(filesystem, path, name, is_atomic=is_atomic, replace=replace)
