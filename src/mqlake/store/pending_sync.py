"""What has to be synced, taken at one moment, so that another thread may wait for the disk."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from mqlake.errors import DiskError, SyncError
from mqlake.storage.protocol import OwnedDirectory

T = TypeVar("T")

# From so many on, threads are worth while.
_MANY = 64
_AT_ONCE = 16


class Syncable(Protocol):
    """What can wait until it is on the disk: a `WritableFile`, for one."""

    def sync(self) -> None:
        """See `WritableFile.sync`."""
        ...


@dataclass(frozen=True)
class PendingSync:
    """Files and directories whose changes up to now are to reach the disk.

    Three steps: made in the store's thread; `run` in any thread, while the store goes on;
    `done` in the store's thread again, and only if `run` raised nothing. Whatever is not done stays
    to be synced: unless `run` raised a `SyncError`, the next one that is made covers it too.

    Attributes:
        directory: the tree that the directories are in.
        files: synced first, many of them at once; they stay open until `done`.
        directories: whose names are synced next.
        done: notes that all this is durable.
    """

    directory: OwnedDirectory
    files: Sequence[Syncable] = ()
    directories: Sequence[str] = ()
    done: Callable[[], None] = field(default=lambda: None)

    def run(self) -> None:
        """Wait for the disk.

        Raises:
            SyncError: the disk failed; none of this may be taken as durable, now or later.
            DiskError: a file or a directory could not be opened; none of this is durable yet.
        """
        _for_each(_sync, self.files)
        _for_each(self._sync_names, self.directories)

    def _sync_names(self, path: str) -> None:
        try:
            self.directory.sync_directory(path)
        except DiskError as error:
            if error.errno != errno.ENOENT:  # a topic's that was removed meanwhile
                raise

    def complete(self) -> None:
        """Do all three steps here."""
        self.run()
        self.done()


def _sync(file: Syncable) -> None:
    file.sync()


def _for_each(sync: Callable[[T], None], things: Sequence[T]) -> None:
    """Sync one after the other, or many at once: a file system syncs them together."""
    if len(things) < _MANY:
        for thing in things:
            sync(thing)
        return
    failures: list[DiskError] = []

    def run(thing: T) -> None:
        try:
            sync(thing)
        except DiskError as error:
            failures.append(error)

    try:
        with ThreadPoolExecutor(_AT_ONCE, "mqlake-sync") as threads:
            for _ in threads.map(run, things):
                pass
    except RuntimeError:  # no more threads can be started
        for thing in things:
            run(thing)
    if failures:
        # Any other failure may pass: it must not hide one that is final.
        raise next((each for each in failures if isinstance(each, SyncError)), failures[0])
