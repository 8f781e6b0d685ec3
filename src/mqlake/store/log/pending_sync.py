"""What has to be synced at one moment, so that another thread can wait for the disk."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from mqlake.errors import DiskError, SyncError
from mqlake.storage.protocol import OwnedDirectory

T = TypeVar("T")

# From this number on, threads pay off.
_MANY = 64
_AT_ONCE = 16


class Syncable(Protocol):
    """Something that can be synced, such as a `WritableFile`."""

    def sync(self) -> None:
        """See `WritableFile.sync`."""
        ...


@dataclass(frozen=True)
class PendingSync:
    """Files and directories whose changes up to now must reach the disk.

    There are three steps: it is created in the store's thread; `run` may be called in any thread,
    while the store continues; `done` is called in the store's thread again, and only if `run`
    raised nothing. Whatever is not done must still
    be synced: unless `run` raised a `SyncError`, the next object covers it, too.

    Attributes:
        directory: the parent of the directories.
        files: synced first, many of them concurrently; they stay open until `done`.
        directories: their names are synced next.
        done: notes that all this is durable.
    """

    directory: OwnedDirectory
    files: Sequence[Syncable] = ()
    directories: Sequence[str] = ()
    done: Callable[[], None] = field(default=lambda: None)

    def run(self) -> None:
        """Wait for the disk.

        Raises:
            SyncError: the disk failed; none of this may be considered durable, now or later.
            DiskError: a file or a directory could not be opened; none of this is durable yet.
        """
        _for_each(_sync, self.files)
        _for_each(self._sync_names, self.directories)

    def _sync_names(self, path: str) -> None:
        try:
            self.directory.sync_directory(path)
        except DiskError as error:
            if error.errno != errno.ENOENT:  # The directory of a topic that was removed meanwhile.
                raise

    def complete(self) -> None:
        """Run all three steps in this thread."""
        self.run()
        self.done()


def _sync(file: Syncable) -> None:
    file.sync()


def _for_each(sync: Callable[[T], None], things: Sequence[T]) -> None:
    """Sync files one after another, or many concurrently: a file system syncs them together."""
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
    except RuntimeError:  # The system starts no more threads.
        for thing in things:
            run(thing)
    if failures:
        # Any other failure may be temporary: it must not hide a permanent one.
        raise next((each for each in failures if isinstance(each, SyncError)), failures[0])
