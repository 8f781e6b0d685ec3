"""Check the target directory before any task starts."""

from __future__ import annotations

from pathlib import Path

from mqlake.errors import StoreError
from mqlake.formats import archive_manifest, record
from mqlake.spark.sink.journal import DIRECTORY, read_journal
from mqlake.storage.local import LocalDirectory
from mqlake.storage.owner_lock import LOCK_NAME
from mqlake.store.log import segments
from mqlake.store.log.segments import open_log
from mqlake.store.settings import StoreSettings
from mqlake.store.snapshot import ABORT_NAME, CHECKPOINT_NAME

_OURS = {DIRECTORY, LOCK_NAME}


def check_target(path: Path) -> None:
    """Check that messages can be added to the store at `path`, or that nothing exists there.

    Raises:
        StoreError: the path is something other than a store, such as an archive, or a store that is
            open or was not closed.
    """
    if not path.exists():
        return
    if not path.is_dir():
        raise StoreError(f"{path}: not a directory")
    others = sorted(entry.name for entry in path.iterdir() if entry.name not in _OURS)
    if not others:
        return
    directory = LocalDirectory(path)
    if directory.exists(archive_manifest.NAME):
        raise StoreError(
            f"{path}: this is an archive, whose files its {archive_manifest.NAME} names; restore "
            "the store into another directory (docs/archive.md)"
        )
    if (owner := directory.lock_holder(LOCK_NAME)) is not None:
        who = f"process {owner}" if owner > 0 else "another process"
        raise StoreError(
            f"{path}: {who} owns this store; stop it first, or write to another directory"
        )
    if not directory.is_directory(segments.DIRECTORY) and not directory.exists(CHECKPOINT_NAME):
        raise StoreError(
            f"{path}: neither a store nor empty (it contains {others[0]!r}); choose a new directory"
        )
    if directory.exists(ABORT_NAME) and read_journal(directory).adding is None:
        raise StoreError(
            f"{path}: the store was not closed (it contains {ABORT_NAME!r}); start and stop "
            "its broker once, or write to another directory"
        )


def largest_record(path: Path, settings: StoreSettings) -> int:
    """Return the maximum size of a record: a blank record must fit after it."""
    size = 0
    if (path / segments.DIRECTORY).is_dir():
        log = open_log(LocalDirectory(path))
        size = log.segment_size or 0
        log.close()
    return (size or settings.mapped_file_size_commit_log) - record.FRAME_SIZE
