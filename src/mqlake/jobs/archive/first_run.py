"""Check that the place of a new archive is not a store, whose files the archive would replace."""

from __future__ import annotations

from mqlake.errors import StoreError
from mqlake.formats.archive_manifest import LOG, NAME
from mqlake.formats.file_name import parse_segment_name
from mqlake.storage.owner_lock import LOCK_NAME
from mqlake.storage.protocol import Directory
from mqlake.store.config import config_files
from mqlake.store.index import index_files
from mqlake.store.queues import queue_files
from mqlake.store.snapshot import ABORT_NAME, CHECKPOINT_NAME

_OF_STORES = (
    CHECKPOINT_NAME,
    ABORT_NAME,
    LOCK_NAME,
    queue_files.DIRECTORY,
    index_files.DIRECTORY,
    config_files.DIRECTORY,
)


def check_new(directory: Directory) -> None:
    """Check that a place without a manifest has at most what a killed first run left.

    That is one segment: the manifest is written after each of them, and before anything else.

    Raises:
        StoreError: it is a store, or an archive that has lost its manifest.
    """
    found = next((name for name in _OF_STORES if directory.exists(name)), None)
    segments = [name for name in directory.names(LOG) if parse_segment_name(name) is not None]
    if found is None and len(segments) > 1:
        found = f"{LOG}/{segments[-1]}"
    if found is not None:
        raise StoreError(
            f"{directory.describe(found)}: exists, but {NAME} does not: this is a store, or an "
            "archive that has lost its manifest; choose another place for the archive"
        )
