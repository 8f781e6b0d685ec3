"""A live store directory and its archive as one directory: each supplies what the other lacks."""

from __future__ import annotations

from zlib import crc32

from mqlake.errors import StoreError, raise_passing
from mqlake.formats import archive_manifest
from mqlake.formats.archive_manifest import Manifest
from mqlake.formats.file_name import parse_segment_name
from mqlake.storage.memory import MemoryFile
from mqlake.storage.protocol import Directory, ReadableFile
from mqlake.store.archive.archived import ArchivedDirectory
from mqlake.store.archive.joined_incarnations import TABLE, joined_table


class JoinedDirectory:
    """The files of a live directory, and those of its archive that the live one no longer has.

    Retention may remove a file of the live directory at any moment; then the archive's is used. So
    the live directory is listed first, and the manifest read after it: a segment that is archived
    before it is removed is in at least one of them.
    """

    def __init__(self, live: Directory, archived: ArchivedDirectory) -> None:
        self._live, self._archived = live, archived

    def describe(self, path: str = "") -> str:
        return self._live.describe(path)

    def names(self, path: str) -> list[str]:
        names = self._live.names(path)
        if path == archive_manifest.LOG:
            self._archived.refresh()
        return sorted({*names, *self._archived.names(path)})

    def is_directory(self, path: str) -> bool:
        return self._live.is_directory(path) or self._archived.is_directory(path)

    def exists(self, path: str) -> bool:
        return self._live.exists(path) or self._archived.exists(path)

    def size(self, path: str) -> int:
        if (table := self._table(path)) is not None:
            return table.size
        try:
            return self._live.size(path)
        except StoreError as error:
            raise_passing(error)
            if not self._has(path):
                raise
            return self._archived.size(path)

    def open(self, path: str) -> ReadableFile:
        if (table := self._table(path)) is not None:
            return table
        try:
            return self._live.open(path)
        except StoreError as error:
            raise_passing(error)
            if not self._has(path):
                raise
            return self._archived.open(path)

    def lock_holder(self, path: str) -> int | None:
        return self._live.lock_holder(path)

    def _table(self, path: str) -> MemoryFile | None:
        """Return the table of incarnations if the archive knows more than the live store."""
        content = joined_table(self._live, self._archived) if path == TABLE else None
        return None if content is None else MemoryFile(content)

    def _has(self, path: str) -> bool:
        """Return whether the archive has a file, perhaps only since the manifest was read."""
        if not self._archived.exists(path):
            self._archived.refresh()
        return self._archived.exists(path)


def check_same_log(live: Directory, manifest: Manifest, archive: str) -> None:
    """Check that a live log continues its archive, and that common segments begin alike.

    A segment is archived once the log continues after it, and retention keeps the last one. So a
    live log that ends before the archive, or that does not exist, is not the archived one.

    Args:
        archive: the name of the archive in messages.

    Raises:
        StoreError: the archive belongs to another log, or there is no live log.
    """
    here = set(live.names(archive_manifest.LOG))
    _check_end(live, here, manifest, archive)
    for segment in manifest.segments:
        if segment.path.rpartition("/")[2] not in here:
            continue
        try:
            file = live.open(segment.path)
        except StoreError as error:
            raise_passing(error)
            continue  # The segment was removed since it was listed.
        length = min(archive_manifest.HEAD_BYTES, segment.size)
        head = file.read(0, length)
        file.close()
        if len(head) == length and crc32(head) != segment.head_crc32:
            raise StoreError(
                f"{archive}: {live.describe(segment.path)} does not begin as the segment in "
                "this archive does: it is the archive of another store, or this store was "
                "created again; use a separate archive for each store"
            )


def _check_end(live: Directory, here: set[str], manifest: Manifest, archive: str) -> None:
    if not manifest.segments:
        return
    bases = [base for name in here if (base := parse_segment_name(name)) is not None]
    log = live.describe(archive_manifest.LOG)
    if not bases:
        raise StoreError(
            f"{log}: there is no segment in it, but {archive} ends at physical offset "
            f"{manifest.end}: give the directory of the live store; if that is lost, read the "
            "archive alone"
        )
    if max(bases) < manifest.segments[-1].start:
        raise StoreError(
            f"{archive}: this archive ends at physical offset {manifest.end}, but the last "
            f"segment in {log} begins at {max(bases)}: it is the archive of another store, or "
            "this store was created again; use a separate archive for each store"
        )
