"""An archive, as a directory like the store that it is a copy of."""

from __future__ import annotations

from functools import cached_property

from mqlake.errors import FormatError, StoreError
from mqlake.formats import archive_manifest
from mqlake.formats.archive_manifest import ArchivedFile, Manifest
from mqlake.storage.durable import TEMPORARY
from mqlake.storage.protocol import Directory, ReadableFile
from mqlake.storage.read_file import read_file
from mqlake.storage.relative_path import check_path
from mqlake.storage.remote.arrow_fs import ArrowDirectory
from mqlake.storage.remote.remote_file import RemoteFile

_MOST_BYTES = 512 << 20


def read_manifest(directory: Directory) -> Manifest | None:
    """Return the manifest of an archive, or None if it does not exist.

    Raises:
        StoreError: the manifest cannot be read, or is not one.
    """
    path = archive_manifest.NAME
    data = read_file(directory, path, _MOST_BYTES)
    if data is None:
        return _written_beside(directory)
    try:
        return archive_manifest.decode(data)
    except FormatError as error:
        raise StoreError(f"{directory.describe(path)}: {error}") from None


def _written_beside(directory: Directory) -> Manifest | None:
    """Return a manifest that was written and not yet moved to its final name.

    If an object cannot be replaced atomically, the old manifest is removed before the new one is
    written, which is then complete elsewhere. A torn manifest is therefore the first of an archive:
    its run was killed.
    """
    data = read_file(directory, f"{archive_manifest.NAME}{TEMPORARY}", _MOST_BYTES)
    try:
        return None if data is None else archive_manifest.decode(data)
    except FormatError:
        return None


class ArchivedDirectory:
    """The files in an archive's manifest, under the paths that they had in the store.

    Args:
        place: the location of the archive's objects.
    """

    def __init__(self, place: Directory, manifest: Manifest | None = None) -> None:
        self._place = place
        if manifest is not None:
            self.__dict__["manifest"] = manifest

    @cached_property
    def manifest(self) -> Manifest:
        """The contents of the archive; an archive without a manifest is empty."""
        return read_manifest(self._place) or Manifest()

    def refresh(self) -> None:
        """Read the manifest again."""
        for name in ("manifest", "_files", "_names"):
            self.__dict__.pop(name, None)

    @cached_property
    def _files(self) -> dict[str, ArchivedFile]:
        return {file.path: file for file in self.manifest.all_files}

    @cached_property
    def _names(self) -> dict[str, set[str]]:
        """The names in each directory."""
        # An archive without a segment is a store that never had a message.
        found: dict[str, set[str]] = {"": {archive_manifest.LOG}, archive_manifest.LOG: set()}
        for path in self._files:
            while path:
                directory, _, name = path.rpartition("/")
                found.setdefault(directory, set()).add(name)
                path = directory
        return found

    def describe(self, path: str = "") -> str:
        return self._place.describe(path)

    def names(self, path: str) -> list[str]:
        return sorted(self._names.get(check_path(path).rstrip("/"), ()))

    def is_directory(self, path: str) -> bool:
        return check_path(path).rstrip("/") in self._names

    def exists(self, path: str) -> bool:
        return path in self._files or self.is_directory(path)

    def size(self, path: str) -> int:
        return self._file(path).size

    def open(self, path: str) -> ReadableFile:
        """Open a file; the bytes of its object are read on access."""
        found = self._file(path)
        if isinstance(self._place, ArrowDirectory):
            return self._place.open_part(found.object, found.size, found.stored)
        opened = self._place.open(found.object)
        if opened.size != found.stored:
            opened.close()
            raise StoreError(
                f"{self.describe(found.object)}: {opened.size} bytes, but the archive's "
                f"manifest says {found.stored}: archive the store again, or verify the archive"
            )
        if found.stored == found.size:
            return opened
        return RemoteFile(self.describe(path), opened.read, found.size, found.stored, opened.close)

    def lock_holder(self, path: str) -> int | None:
        """Return None: nobody owns an archive."""
        check_path(path)
        return None

    def _file(self, path: str) -> ArchivedFile:
        check_path(path)
        found = self._files.get(path)
        if found is None:
            raise StoreError(f"{self.describe(path)}: the file does not exist in the archive")
        return found
