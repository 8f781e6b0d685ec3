"""What has to be synced, taken at one moment, so that another thread may wait for the disk."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mqlake.errors import DiskError
from mqlake.storage.protocol import OwnedDirectory


class Syncable(Protocol):
    """What can wait until it is on the disk: a `WritableFile`, for one."""

    def sync(self) -> None:
        """See `WritableFile.sync`."""
        ...


@dataclass(frozen=True)
class PendingSync:
    """Files and directories whose changes up to now are to reach the disk.

    Three steps: made in the store's thread; `run` in any thread, while the store goes on;
    `done` in the store's thread again, and only if `run` raised nothing.

    Attributes:
        directory: the tree that the directories are in.
        files: synced first, in this order; they stay open until `done` or `failed`.
        directories: whose names are synced next, in this order.
        done: notes that all this is durable.
    """

    directory: OwnedDirectory
    files: Sequence[Syncable] = ()
    directories: Sequence[str] = ()
    done: Callable[[], None] = field(default=lambda: None)

    def run(self) -> None:
        """Wait for the disk.

        Raises:
            DiskError: the disk failed; none of this may be taken as durable, now or later.
        """
        for file in self.files:
            file.sync()
        for path in self.directories:
            try:
                self.directory.sync_directory(path)
            except DiskError as error:
                if error.errno != errno.ENOENT:  # a topic's that was removed meanwhile
                    raise

    def complete(self) -> None:
        """Do all three steps here."""
        self.run()
        self.done()
