"""The files of a commit log that this process writes: created ahead, synced, cut and removed.

Upstream: `MappedFileQueue`, `AllocateMappedFileService`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import perf_counter
from typing import NamedTuple

from mqlake.errors import DiskError, SyncError
from mqlake.formats.file_name import parse_segment_name, segment_name
from mqlake.metrics.histogram import Histogram
from mqlake.storage.protocol import OwnedDirectory, WritableFile
from mqlake.store.log.pending_sync import PendingSync
from mqlake.store.log.segments import DIRECTORY, Segment

_ZERO_STEP = 1 << 20
# Upper bounds of the histogram of syncs, in seconds.
_SYNC_BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class _TimedSync:
    """A file whose sync is measured, in whichever thread that is.

    Attributes:
        seconds: how long it took.
    """

    def __init__(self, file: WritableFile) -> None:
        self._file, self.seconds = file, 0.0

    def check_linked(self) -> None:
        self._file.check_linked()

    def sync(self) -> None:
        """Sync the file: see `WritableFile.sync`."""
        begin = perf_counter()
        self._file.sync()
        self.seconds = perf_counter() - begin


class _PreparedFile(NamedTuple):
    """A file that was created in advance, and the physical offset it begins at."""

    base: int
    file: WritableFile


class OwnedSegmentFiles:
    """The writable files of one log. For one thread.

    Args:
        size: bytes of a new file.

    Attributes:
        writing: the files that are not durable as a whole yet, by base; the last one is being
            appended to.
        sync_times: seconds that syncs of files took.
    """

    def __init__(self, directory: OwnedDirectory, size: int) -> None:
        self._directory, self.size = directory, size
        self.writing: dict[int, WritableFile] = {}
        self.sync_times = Histogram(_SYNC_BOUNDS)
        self._prepared: _PreparedFile | None = None
        self._names_made = self._names_synced = 0
        self._is_directory_new = False

    # Create

    def prepare(self, base: int) -> None:
        """Create the next file, so that `following` need not. It reports why that fails."""
        if self._prepared is None:
            with suppress(DiskError):
                self._prepared = _PreparedFile(base, self._create(base))

    @property
    def is_prepared(self) -> bool:
        """Whether the next file exists already."""
        return self._prepared is not None

    def following(self, base: int) -> WritableFile:
        """Return the next file, which is created if it is not yet.

        Raises:
            DiskError: it cannot be created.
        """
        if self._prepared is None or self._prepared.base != base:
            self._prepared = _PreparedFile(base, self._create(base))
        return self._prepared.file

    def use(self, base: int, file: WritableFile) -> None:
        """Note that a file is appended to from now on."""
        self.writing[base] = file
        if self._prepared is not None and file is self._prepared.file:
            self._prepared = None

    def _create(self, base: int) -> WritableFile:
        if not self._directory.is_directory(DIRECTORY):
            # Its name is synced with the file's: a failed sync there is final.
            self._directory.make_directory(DIRECTORY)
            self._is_directory_new = True
        file = self._directory.create(f"{DIRECTORY}/{segment_name(base)}", self.size)
        self._names_made += 1
        return file

    # Sync

    @property
    def has_new_names(self) -> bool:
        """Whether files were created whose names are not durable yet."""
        return self._names_made != self._names_synced

    def pending_sync(self, note: Callable[[], object]) -> PendingSync:
        """Return a job that makes all files durable as they are, and their names.

        Args:
            note: called once they are.
        """
        written, names = list(self.writing.items()), self._names_made
        files = [_TimedSync(file) for _, file in written]

        def done() -> None:
            for file in files:
                self.sync_times.add(file.seconds)
            note()
            self._names_synced = max(self._names_synced, names)
            self._is_directory_new = False
            for base, _ in written[:-1]:
                # The file is not closed: another sync may be running. The last user closes it.
                self.writing.pop(base, None)

        directories = [DIRECTORY] if self.has_new_names else []
        directories += [""] if self._is_directory_new else []
        return PendingSync(self._directory, files, directories, done)

    def check_linked(self, segments: Iterable[Segment]) -> None:
        """Check that no file of these segments was removed.

        Raises:
            SyncError: a file was removed.
        """
        for file in list(self.writing.values())[-1:]:
            file.check_linked()
        names = self._directory.names(DIRECTORY)
        if gone := {segment.name for segment in segments}.difference(names):
            path = self._directory.describe(f"{DIRECTORY}/{min(gone)}")
            raise SyncError(
                f"{path}: the file was removed while it was in use, so its messages are lost; "
                "restore it and start again",
                errno.ENOENT,
            )

    # Recover

    def sync(self, segments: Iterable[Segment], dirty_from: int) -> None:
        """Sync files as they are, in any thread.

        Args:
            dirty_from: files before this physical offset are known to be durable.

        Raises:
            DiskError: the disk failed.
        """
        for segment in segments:
            if segment.end > dirty_from:
                file = self._directory.open_writable(segment.path)
                try:
                    file.sync()
                finally:
                    file.close()

    def remove_after(self, end: int) -> None:
        """Remove the files that begin after a physical offset.

        Raises:
            DiskError: the system refused it.
        """
        for name in self._directory.names(DIRECTORY):
            base = parse_segment_name(name)
            if base is not None and base > end:
                self._directory.remove(f"{DIRECTORY}/{name}")

    def cut(self, segment: Segment, end: int) -> tuple[Segment, WritableFile | None]:
        """Let the last file end at a physical offset: the rest of it becomes zero, durably.

        Return its segment, which gets the size of the others, and the file; None if it has no room.

        Raises:
            DiskError: the disk failed.
        """
        is_short = segment.end - segment.base < self.size
        if is_short and end - segment.base < self.size:
            self._directory.truncate(segment.path, self.size)
            segment = segment._replace(end=segment.base + self.size)
        file = self._directory.open_writable(segment.path)
        _clear(file, end - segment.base)
        file.sync()
        if end < segment.end:
            return segment, file
        file.close()
        return segment, None

    def sync_names(self, *, with_folder: bool = False) -> None:
        """Make the names of files durable, and that of their folder.

        Raises:
            DiskError: the disk failed.
        """
        if self._directory.is_directory(DIRECTORY):
            self._directory.sync_directory(DIRECTORY)
            if with_folder:
                self._directory.sync_directory("")

    # Remove, close

    def remove(self, segment: Segment) -> None:
        """Remove a file; the removal is durable once the names are synced.

        Raises:
            DiskError: the system refused it; the file still exists.
        """
        self._directory.remove(segment.path)
        self.writing.pop(segment.base, None)

    def forget(self) -> None:
        """Remove all files, durably; a try again after an error begins with no file in use.

        Raises:
            DiskError: a file cannot be removed.
        """
        files = [*self.writing.values()]
        self.writing.clear()
        if self._prepared is not None:
            files.append(self._prepared.file)
        self.remove_after(-1)
        self._prepared = None
        for file in files:
            file.close()
        self.sync_names()

    def close(self) -> None:
        """Drop all files; remove the one that was created in advance."""
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            with suppress(DiskError):  # Otherwise the next start removes it.
                self._directory.remove(f"{DIRECTORY}/{segment_name(prepared.base)}")
        self.writing.clear()


def _clear(file: WritableFile, start: int) -> None:
    """Zero the bytes from `start` on if they are not zero."""
    for data_start, data_end in file.data_ranges(start, file.size):
        for at in range(data_start, data_end, _ZERO_STEP):
            length = min(_ZERO_STEP, data_end - at)
            if file.read(at, length).strip(b"\0"):
                file.write(at, bytes(length))
