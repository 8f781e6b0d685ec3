"""The file that exists while a store is open, or was not closed (docs/formats/abort_file.md).

Upstream: `DefaultMessageStore.createTempFile`.
"""

from __future__ import annotations

import os

from mqlake.formats import abort_file
from mqlake.storage.durable import create_file
from mqlake.storage.protocol import Directory, OwnedDirectory
from mqlake.store.snapshot import ABORT_NAME


def was_left_open(directory: Directory) -> bool:
    """Return whether the file exists: the last process did not stop cleanly.

    Raises:
        StoreError: the system refused an operation.
    """
    return directory.exists(ABORT_NAME)


def mark_open(directory: OwnedDirectory) -> None:
    """Create the file durably if it does not exist.

    Raises:
        DiskError: the system refused it.
    """
    if was_left_open(directory):
        # The process that created it may have died before it was durable.
        directory.sync_directory("")
        return
    content = abort_file.encode(os.getpid())
    file = create_file(directory, ABORT_NAME, len(content))
    try:
        file.write(0, content)
    finally:
        file.close()


def mark_closed(directory: OwnedDirectory) -> None:
    """Remove the file durably. Everything that was written must be durable.

    Raises:
        DiskError: the system refused it.
    """
    directory.remove(ABORT_NAME)
    directory.sync_directory("")
