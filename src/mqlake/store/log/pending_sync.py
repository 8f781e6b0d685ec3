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

# From this number on, one call for all of them pays off; without it, threads do.
_MANY = 64
_THREADS = 4


class Syncable(Protocol):
    """Something that can be synced, such as a `WritableFile`."""

    def sync(self) -> None:
        """See `WritableFile.sync`."""
        ...

    def check_linked(self) -> None:
        """See `WritableFile.check_linked`."""
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
        files: synced first; they stay open until `done`.
        directories: their names are synced next.
        done: notes that all this is durable.
        paths: of the files, if many are to be synced together (`OwnedDirectory.sync_together`).
    """

    directory: OwnedDirectory
    files: Sequence[Syncable] = ()
    directories: Sequence[str] = ()
    done: Callable[[], None] = field(default=lambda: None)
    paths: Sequence[str] = ()

    def run(self) -> None:
        """Wait for the disk.

        Raises:
            SyncError: the disk failed; none of this may be considered durable, now or later.
            DiskError: a file or a directory could not be opened; none of this is durable yet.
        """
        files, directories = self.files, self.directories
        if self.paths and len(files) + len(directories) >= _MANY:
            left = set(self.directory.sync_together([*self.paths, *directories]))
            for path, file in zip(self.paths, files, strict=True):
                if path not in left:
                    file.check_linked()
            files = [file for path, file in zip(self.paths, files, strict=True) if path in left]
            directories = [path for path in directories if path in left]
        _for_each(_sync, files)
        _for_each(self._sync_names, directories)

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

    def run(some: Sequence[T]) -> None:
        for thing in some:
            try:
                sync(thing)
            except DiskError as error:
                failures.append(error)

    shares = [things[first::_THREADS] for first in range(_THREADS)]
    try:
        with ThreadPoolExecutor(_THREADS, "mqlake-sync") as threads:
            for _ in threads.map(run, shares):
                pass
    except RuntimeError:  # The system starts no more threads.
        run(things)
    if failures:
        # Any other failure may be temporary: it must not hide a permanent one.
        raise next((each for each in failures if isinstance(each, SyncError)), failures[0])
