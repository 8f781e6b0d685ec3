"""The files of the consume queues that this process writes: open ones, and those to be synced.

Upstream: `MappedFileQueue`.
"""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Callable

from mqlake.errors import DiskError, SyncError
from mqlake.storage.durable import parent
from mqlake.storage.protocol import Buffer, OwnedDirectory, WritableFile
from mqlake.store.log.pending_sync import PendingSync
from mqlake.store.queues.queue_kind import BATCH, SIMPLE, QueueKind

_MOST_OPEN = 4096
_SHARE_OF_DESCRIPTORS = 8
_KEPT = 8
"""If no more files may be open, one of so many that are written is kept open, in place of another:
those that are written often are soon among them.
"""
_BATCH_PATH = f"{BATCH.directory}/"


class OwnedQueueFiles:
    """The files of all queues of a store, by path. For one thread.

    They are opened on demand, and the least recently used are closed.

    Args:
        file_size, batch_file_size: bytes of each file, of a simple and of a batch consume queue.
    """

    def __init__(self, directory: OwnedDirectory, file_size: int, batch_file_size: int) -> None:
        self._file_sizes = {
            SIMPLE: SIMPLE.file_size(file_size),
            BATCH: BATCH.file_size(batch_file_size),
        }
        self._directory = directory
        self._open: OrderedDict[str, WritableFile] = OrderedDict()
        # Files to sync, with the number of the last sync that had begun when they were last
        # changed. They stay here until a sync that covers them has succeeded.
        self._dirty: dict[str, int] = {}
        self._new_names: dict[str, int] = {}
        self._syncs = 0
        self._most_open = _most_open()
        self._written_once = 0

    @property
    def most_open(self) -> int:
        """How many files are kept open."""
        return self._most_open

    def file_size_of(self, kind: QueueKind) -> int:
        """Return the bytes of each file of a kind of queue."""
        return self._file_sizes[kind]

    def file(self, path: str) -> WritableFile:
        """Return an open file; a file that a crash left shorter gets its size again."""
        file = self._open.get(path)
        if file is not None:
            self._open.move_to_end(path)
            return file
        file = self._directory.open_writable(path)
        size = self._size_of(path)
        if file.size != size:
            file.close()
            self._directory.truncate(path, size)
            self._dirty[path] = self._syncs
            self.distrust_names(parent(path))
            file = self._directory.open_writable(path)
        self._keep(path, file)
        return file

    def write(self, path: str, at: int, data: bytes | Buffer) -> None:
        """Write bytes of a file, which must then be synced."""
        self._dirty[path] = self._syncs  # Even if it fails: some of it may have been written.
        if path not in self._open and len(self._open) >= self._most_open:
            self._written_once += 1
            if self._written_once % _KEPT and self._directory.write_at(
                path, self._size_of(path), at, data
            ):
                return
        self.file(path).write(at, data)

    def _size_of(self, path: str) -> int:
        return self._file_sizes[BATCH if path.startswith(_BATCH_PATH) else SIMPLE]

    def make_file(self, path: str, size: int, *, is_first: bool) -> None:
        """Create a file of a queue.

        Args:
            is_first: whether the queue has no file yet, and perhaps no directory.
        """
        directory = parent(path)
        if is_first and not self._directory.is_directory(directory):
            self._make_directories(directory)
        self._keep(path, self._directory.create(path, size))
        self._dirty[path] = self._new_names[directory] = self._syncs

    def remove_file(self, path: str) -> None:
        """Remove a file of a queue; those who have it open can still read it."""
        # This comes first: a sync that finds it missing checks here whether it should exist.
        changed = self._dirty.pop(path, None)
        try:
            self._directory.remove(path)
        except DiskError:
            if changed is not None:
                self._dirty[path] = changed
            raise
        self._open.pop(path, None)
        self._new_names[parent(path)] = self._syncs

    def remove_directory(self, path: str) -> None:
        """Remove a directory, unless it has files that are not the store's."""
        try:
            self._directory.remove_directory(path)
        except DiskError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return
        self._new_names.pop(path, None)

    def distrust_name(self, path: str) -> None:
        """Include the name of a file or directory in the next sync."""
        self._new_names[parent(path)] = self._syncs

    def distrust_names(self, path: str) -> None:
        """Include the names in a directory, and its own name, in the next sync.

        Names of files that a killed process left may not be durable.
        """
        while path:
            self._new_names[path] = self._syncs
            path = parent(path)
        self._new_names[""] = self._syncs

    def _make_directories(self, path: str) -> None:
        if path and not self._directory.is_directory(path):
            self._make_directories(parent(path))
            self._directory.make_directory(path)
            self._new_names[parent(path)] = self._syncs

    def _keep(self, path: str, file: WritableFile) -> None:
        self._open[path] = file
        if len(self._open) > self._most_open:
            # The file is not closed: a sync may be running. The last user closes it.
            self._open.popitem(last=False)

    # Sync

    @property
    def unsynced(self) -> int:
        """How many files have entries that are not durable yet."""
        return len(self._dirty)

    def pending_sync(self) -> PendingSync:
        """Return a job that makes all current entries durable, and the names of their files."""
        paths = list(self._dirty)
        files = [self._open.get(path) or self._closed_file(path) for path in paths]
        # The deepest directory comes first: a name is worth nothing before its target is durable.
        names = sorted(self._new_names, key=lambda path: -path.count("/"))
        self._syncs = number = self._syncs + 1

        def done() -> None:
            self._dirty = _later(self._dirty, number)
            self._new_names = _later(self._new_names, number)

        return PendingSync(self._directory, files, names, done, paths)

    def _closed_file(self, path: str) -> _ClosedFile:
        return _ClosedFile(self._directory, path, lambda: path in self._dirty)

    def check_linked(self) -> None:
        """Check that the file that was used last was not removed.

        The others are checked when they are synced.

        Raises:
            SyncError: it was removed.
        """
        if self._open:
            self._open[next(reversed(self._open))].check_linked()

    def sync(self) -> None:
        """Return once all entries, and the names of their files, are durable.

        Raises:
            DiskError: the disk failed; nothing since the last sync may be considered durable.
        """
        self.pending_sync().complete()

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()
        self._open.clear()


def _most_open() -> int:
    """Return how many files may be open: a share of the process's descriptors."""
    try:
        import resource
    except ImportError:  # This is not a POSIX system.
        return 64
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_OPEN if soft < 0 else max(16, min(_MOST_OPEN, soft // _SHARE_OF_DESCRIPTORS))


def _later(changes: dict[str, int], sync: int) -> dict[str, int]:
    """Return the changes that a sync does not cover."""
    return {path: begun for path, begun in changes.items() if begun >= sync}


class _ClosedFile:
    """A file that is open only while it is synced.

    Args:
        is_kept: returns, in any thread, whether the store has not removed the file.
    """

    def __init__(self, directory: OwnedDirectory, path: str, is_kept: Callable[[], bool]) -> None:
        self._directory, self._path, self._is_kept = directory, path, is_kept

    def sync(self) -> None:
        try:
            file = self._directory.open_writable(self._path)
        except DiskError as error:
            if error.errno != errno.ENOENT:
                raise
            if self._is_kept():
                raise SyncError(
                    f"{error}: the file was removed while it was in use; restart the store, "
                    "which derives it from the log again",
                    errno.ENOENT,
                ) from error
            return  # It was trimmed meanwhile.
        try:
            file.sync()
        finally:
            file.close()

    def check_linked(self) -> None:
        """Do nothing: without its file, it is synced by `sync`."""
