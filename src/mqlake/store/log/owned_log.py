"""The commit log of a store that this process writes (docs/live-store.md).

Upstream: `CommitLog`, `MappedFileQueue`, `AllocateMappedFileService`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter

import numpy as np

from mqlake.dispatch.batch import Bytes
from mqlake.errors import DiskError, StoreError, SyncError
from mqlake.formats import record
from mqlake.formats.file_name import parse_segment_name, segment_name
from mqlake.metrics.histogram import Histogram
from mqlake.storage.protocol import OwnedDirectory, ReadableFile, WritableFile
from mqlake.store.log.end_readahead import EndReadahead
from mqlake.store.log.segments import DIRECTORY, CommitLog, Segment, find_segments
from mqlake.store.pending_sync import PendingSync

# Room is reserved ahead, so that most records need not check for it.
_RESERVE_AHEAD = 1 << 20
# The size of a record's first field, in bytes.
_SIZE_SIZE = 4
# For this many bytes or more, a write call costs less than a fault for each page of the mapping.
_LONG = 16 << 10
_ZERO_STEP = 1 << 20
# Upper bounds of the histogram of syncs, in seconds.
_SYNC_BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_NO_BYTES: Bytes = np.empty(0, np.uint8)

Buffer = bytes | memoryview


class NextFileError(DiskError):
    """The next file of the commit log cannot be created."""


def open_owned_log(directory: OwnedDirectory, file_size: int) -> OwnedCommitLog:
    """Return the log of a directory, to be recovered and then appended to.

    Args:
        file_size: bytes of a new segment if the log is empty.

    Raises:
        StoreError: the directory cannot be read.
    """
    return OwnedCommitLog(directory, find_segments(directory), file_size)


class _Timed:
    """A file whose sync is measured, in whichever thread that is.

    Attributes:
        seconds: how long it took.
    """

    def __init__(self, file: WritableFile) -> None:
        self._file, self.seconds = file, 0.0

    def sync(self) -> None:
        """Sync the file: see `WritableFile.sync`."""
        begin = perf_counter()
        self._file.sync()
        self.seconds = perf_counter() - begin


class OwnedCommitLog(CommitLog):
    """The segments of a store, ascending, and the end at which records are appended.

    For one thread; the job that `unsynced` returns may run in another. A store keeps the segment
    size that its files have, whatever the settings say.

    Attributes:
        end: physical offset of the next record (or a file's end, before a roll).
        flushed: physical offset before which everything is durable.
        base: physical offset of the last file, to which records are appended.
        sync_times: seconds that syncs of files took.
        array: u8[n], the bytes of that file, for a caller that writes a record itself: before
            `room_end`, in the order of `append_record`. It then calls `changed` and moves `end`.
        room_end: position in that file before which the disk has room for records.
        changed: called with changed bytes (position, length), if not None.

    Until `recover_to` both are the end of the last file, and nothing may be appended.

    Args:
        found: the segments as `find_segments` returns them.
        file_size: bytes of a new segment if the log is empty.
    """

    def __init__(self, directory: OwnedDirectory, found: Sequence[Segment], file_size: int) -> None:
        super().__init__(directory, found)
        self._owned = directory
        # Segments that are not durable as a whole yet, by base; the last one is being appended to.
        self._writing: dict[int, WritableFile] = {}
        self.sync_times = Histogram(_SYNC_BOUNDS)
        self._file: WritableFile | None = None
        self._prepared: WritableFile | None = None
        self._size = self.segment_size or file_size
        self._names_made = self._names_synced = 0
        self._is_directory_new = False
        self._buffer, self.array = memoryview(b""), _NO_BYTES
        self._written: Callable[[int, int], None]
        self.changed: Callable[[int, int], None] | None = None
        self.base = self.end = self.flushed = self.limit
        self._limit = self.room_end = 0
        # Position in the last file before which a write that failed may have left bytes.
        self._remains_end = 0
        self._readahead = EndReadahead()

    @property
    def file_size(self) -> int:
        """Bytes of a new segment."""
        return self._size

    @property
    def largest_record(self) -> int:
        """Maximum size of one record, or of one batch: a blank record must fit after it."""
        return self._size - record.FRAME_SIZE

    # Append

    def offset_for(self, size: int) -> int:
        """Return the physical offset of the next record if it has `size` bytes."""
        end = self.end
        return end if end - self.base + size <= self._limit else self.base + len(self._buffer)

    def append(self, data: Buffer) -> None:
        """Append a record, or several, of up to `largest_record` bytes at `offset_for` their size.

        Raises:
            DiskError: there is no room on the disk; nothing has changed.
            NextFileError: the same, and the record needs the next file.
        """
        if len(data) >= _LONG:
            self._make_room_for(len(data))
            self._write_by_call(memoryview(data))
        else:
            self.append_record(len(data), data[:_SIZE_SIZE], data[_SIZE_SIZE:])

    def append_by_call(self, data: memoryview) -> None:
        """Append records, in the order of `append_record`, without the mapping.

        Raises:
            DiskError: as for `append`.
        """
        self._make_room_for(len(data))
        self._write_by_call(data)

    def _make_room_for(self, size: int) -> None:
        if self.position + size > self.room_end:
            self.make_room(size)

    def append_parts(self, size: int, first: Buffer, parts: Sequence[Buffer]) -> None:
        """Append like `append_record`, without the mapping: parts follow the first field.

        Raises:
            DiskError: as for `append`.
        """
        self._make_room_for(size)
        self._write_parts(size, first, parts)

    def _write_by_call(self, data: memoryview) -> None:
        self._write_parts(len(data), data[:_SIZE_SIZE], (data[_SIZE_SIZE:],))

    def _write_parts(self, size: int, first: Buffer, parts: Sequence[Buffer]) -> None:
        file, at = self._writing_file(), self.position
        try:
            place = at + len(first)
            for part in parts:
                file.write(place, part)
                place += len(part)
            file.write(at, first)
        except DiskError:
            # Part of it may be there: after the next record, it must not look like one.
            self._remains_end, self.room_end = max(self._remains_end, at + size), 0
            raise
        self.end += size
        self._readahead.note_call(size)

    def append_record(self, size: int, first: Buffer, rest: Buffer) -> None:
        """Append like `append`: a record's first field, and then the rest, `size` bytes."""
        at = self.end - self.base
        if at + size > self.room_end:
            self.make_room(size)
            at = self.end - self.base
        # The first record's size is written last. If the process dies before, or the page reaches
        # the disk in between, nothing there can be mistaken for a record.
        middle, end, buffer = at + len(first), at + size, self._buffer
        buffer[middle:end] = rest
        self._written(middle, end - middle)
        buffer[at:middle] = first
        self._written(at, middle - at)
        self.end += size

    def make_room(self, size: int) -> None:
        """Append the next `size` bytes (up to `largest_record`) at the `end` at that time.

        Begins the next file if they do not fit in this one with a blank record after them.

        Raises:
            DiskError: as for `append`.
        """
        if self._file is None or self.position + size > self._limit:
            self._roll(size)
        else:
            self._prepare_room(self._file, size)

    def room_for(self, most: int) -> int:
        """Return how many bytes, up to `most`, can be appended to this file; 0 if none.

        Raises:
            DiskError: there is no room on the disk.
        """
        size = min(most, self._limit - self.position)
        if size <= 0 or self._file is None:
            return 0
        if self.position + size > self.room_end:
            self._prepare_room(self._file, size)
        return size

    def _prepare_room(self, file: WritableFile, size: int) -> None:
        at = self.position
        self._readahead.choose(at)
        if self._remains_end > at:
            file.write(at, bytes(self._remains_end - at))
        self._remains_end = 0
        self._reserve(file, at, size)

    @property
    def position(self) -> int:
        """The bytes of the last file that are in use."""
        return self.end - self.base

    def prepare_next(self) -> None:
        """Create the next file once more than half of this one is used, so that a roll need not."""
        if self._prepared is None and self._file and 2 * self.position > len(self._buffer):
            with suppress(DiskError):  # The roll tries again, and reports why it fails.
                self._prepared = self._create(self.base + len(self._buffer))

    # Bytes that another store has appended

    @property
    def file_end(self) -> int:
        """Physical offset just past the file of the next record."""
        return self.base + (len(self._buffer) or self._size)

    def begin_at(self, base: int) -> None:
        """Let a log without a record begin at a physical offset.

        Raises:
            DiskError: a file that begins elsewhere cannot be removed.
        """
        if self._segments and self.base == base:
            return
        if self._segments or self._file is not None or self._prepared is not None:
            self._forget_files()
        self.base = self.end = self.flushed = base

    def _forget_files(self) -> None:
        """Remove all files; a try again after an error begins with no file in use."""
        files = [*self._writing.values()]
        self._writing.clear()
        if self._prepared is not None:
            files.append(self._prepared)
        self._file, self._buffer, self.array = None, memoryview(b""), _NO_BYTES
        self._readahead = EndReadahead()
        self._limit = self.room_end = 0
        self._remove_after(-1)
        self._prepared = None
        for file in files:
            file.close()
        if self._owned.is_directory(DIRECTORY):
            self._owned.sync_directory(DIRECTORY)

    def write_padding(self, distance: int, data: Buffer) -> None:
        """Write bytes after the head of a blank record that is not appended yet.

        Args:
            distance: bytes between `end`, where its head will be, and the first of these.

        Raises:
            DiskError: there is no room on the disk.
        """
        at = self.position + distance
        file = self._writing_file()
        file.reserve(at, len(data))
        self._buffer[at : at + len(data)] = data
        file.written(at, len(data))

    def append_blank(self, head: bytes) -> None:
        """Append the head of a blank record whose padding is written, and begin the next file.

        Raises:
            NextFileError: the next file cannot be created.
        """
        base, at, file = self.file_end, self.position, self._writing_file()
        try:
            following = self._prepared = self._prepared or self._create(base)
            mapping = following.mapping()
            file.reserve(at, record.FRAME_SIZE)
        except DiskError as error:
            raise NextFileError(str(error), error.errno) from error
        for start, end in ((_SIZE_SIZE, len(head)), (0, _SIZE_SIZE)):
            self._buffer[at + start : at + end] = head[start:end]
            file.written(at + start, end - start)
        self._prepared, self.room_end = None, 0
        self._use(following, Segment(segment_name(base), base, base + following.size), mapping)
        self.end = base

    def _writing_file(self) -> WritableFile:
        """Return the file of `end`; a log may begin with a blank record."""
        if self._file is None:
            self._roll(record.FRAME_SIZE)
        assert self._file is not None
        return self._file

    def _reserve(self, file: WritableFile, at: int, size: int) -> None:
        ahead = min(at + size + _RESERVE_AHEAD, file.size - record.FRAME_SIZE)
        try:
            file.reserve(at, ahead - at)
        except DiskError:
            ahead = at + size
            file.reserve(at, size)
        self.room_end = ahead

    def _roll(self, size: int) -> None:
        base, room_end = self.base + len(self._buffer), self.room_end
        try:
            file = self._prepared = self._prepared or self._create(base)
            mapping = file.mapping()
            self._reserve(file, 0, size)
            self._end_file()
        except DiskError as error:
            self.room_end = room_end
            raise NextFileError(str(error), error.errno) from error
        self._prepared = None
        self._use(file, Segment(segment_name(base), base, base + file.size), mapping)
        self.end = base

    def _end_file(self) -> None:
        """Fill the rest of the file with a blank record, of which only the head is written."""
        at = self.position
        left = len(self._buffer) - at
        if self._file is not None and left >= record.FRAME_SIZE:
            self._file.reserve(at, record.FRAME_SIZE)
            self._buffer[at : at + record.FRAME_SIZE] = record.encode_blank_head(left)
            self._file.written(at, record.FRAME_SIZE)

    def _create(self, base: int) -> WritableFile:
        if not self._owned.is_directory(DIRECTORY):
            # Its name is synced with the file's: a failed sync there is final.
            self._owned.make_directory(DIRECTORY)
            self._is_directory_new = True
        file = self._owned.create(f"{DIRECTORY}/{segment_name(base)}", self._size)
        self._names_made += 1
        return file

    def _use(self, file: WritableFile, segment: Segment, mapping: memoryview) -> None:
        if self._bases and self._bases[-1] == segment.base:
            self._segments[-1] = segment
        else:
            self._segments.append(segment)
            self._bases.append(segment.base)
        self._writing[segment.base] = self._file = file
        self._written = file.written
        self._readahead.begin(mapping, max(0, self.end - segment.base))
        self.base, self._buffer, self._remains_end = segment.base, mapping, 0
        self.array = np.frombuffer(mapping, np.uint8)
        self.changed = file.written if file.is_watched else None
        self._limit = len(mapping) - record.FRAME_SIZE

    # Sync

    def unsynced(self) -> PendingSync:
        """Return a job that makes everything up to `end` durable, including names of files."""
        end, names = self.end, self._names_made
        if end == self.flushed and names == self._names_synced:
            return PendingSync(self._owned)
        written = list(self._writing.items())
        files = [_Timed(file) for _, file in written]

        def done() -> None:
            for file in files:
                self.sync_times.add(file.seconds)
            self.flushed = max(self.flushed, end)
            self._names_synced = max(self._names_synced, names)
            self._is_directory_new = False
            for base, _ in written[:-1]:
                # The file is not closed: another sync may be running. The last user closes it.
                self._writing.pop(base, None)

        directories = [DIRECTORY] if names != self._names_synced else []
        directories += [""] if self._is_directory_new else []
        return PendingSync(self._owned, files, directories, done)

    def check_linked(self) -> None:
        """Check that no file of the log was removed.

        Raises:
            SyncError: a file was removed.
        """
        if self._file is not None:
            self._file.check_linked()
        gone = {segment.name for segment in self._segments}.difference(self._owned.names(DIRECTORY))
        if gone:
            path = self._owned.describe(f"{DIRECTORY}/{min(gone)}")
            raise SyncError(
                f"{path}: the file was removed while it was in use, so its messages are lost; "
                "restore it and start again",
                errno.ENOENT,
            )

    def sync(self) -> None:
        """Return once everything up to `end` is durable.

        Raises:
            DiskError: the disk failed; nothing above `flushed` may be considered durable any more.
        """
        self.unsynced().complete()

    # Read

    def file(self, segment: Segment) -> ReadableFile:
        """Return the segment's open file.

        Raises:
            StoreError: the file cannot be opened. It exists, so this must not look like the log's
                end.
        """
        return self._writing.get(segment.base) or self._open_file(segment)

    def mapped(self, segment: Segment) -> Bytes | None:
        return self.array if segment.base == self.base and len(self.array) else None

    def read(self, physical_offset: int, size: int) -> memoryview:
        """Return bytes of the log, read-only and not copied; they stay valid after deletion.

        Raises:
            StoreError: the bytes are not within one file of the log, or not yet appended.
        """
        place = self.place(physical_offset)
        if (
            place is None
            or size < 0
            or physical_offset + size > self.end
            or place.at + size > place.end
        ):
            where = f"[{self.min_offset}, {self.end})"
            raise StoreError(
                f"the log has {where}: no {size} bytes at physical offset {physical_offset}"
            )
        return place.view[place.at : place.at + size]

    # Recover, trim, close

    def recover_to(self, end: int, dirty_from: int = 0) -> None:
        """Let the log end at a physical offset; return once all of it is durable.

        Later files are removed. The rest of the file of `end` becomes zero, so that no old record
        can reappear after new ones. If nothing follows, nothing changes.

        Args:
            end: within a segment, or just past one.
            dirty_from: files before this physical offset are known to be durable.

        Raises:
            DiskError: the system refused an operation.
        """
        self._remove_after(end)
        self.end = self.flushed = self.base = end
        for segment in self._segments[:-1]:
            if segment.end > dirty_from:
                self._sync_file(segment)
        if self._segments:
            self._recover_last(self._segments[-1], end)
        if self._owned.is_directory(DIRECTORY):
            self._owned.sync_directory(DIRECTORY)
            self._owned.sync_directory("")

    def sync_files(self, dirty_from: int) -> None:
        """Sync the files that `recover_to` syncs, as they are; called in another thread before it.

        Raises:
            DiskError: as for `recover_to`.
        """
        for segment in list(self._segments):
            if segment.end > dirty_from:
                self._sync_file(segment)

    def _sync_file(self, segment: Segment) -> None:
        file = self._owned.open_writable(segment.path)
        try:
            file.sync()
        finally:
            file.close()

    def _remove_after(self, end: int) -> None:
        for name in self._owned.names(DIRECTORY):
            base = parse_segment_name(name)
            if base is not None and base > end:
                self._owned.remove(f"{DIRECTORY}/{name}")
        self.refresh()

    def _recover_last(self, segment: Segment, end: int) -> None:
        is_short = segment.end - segment.base < self._size
        if is_short and end - segment.base < self._size:
            self._owned.truncate(segment.path, self._size)
            segment = segment._replace(end=segment.base + self._size)
        file = self._owned.open_writable(segment.path)
        _clear(file, end - segment.base)
        file.sync()
        if end < segment.end:
            self._use(file, segment, file.mapping())
        else:
            file.close()

    def remove_first(self) -> Segment | None:
        """Remove the first file, unless it is the last; return it.

        The removal is durable once the names in `DIRECTORY` are synced.

        Raises:
            DiskError: the system refused it; the file still exists.
        """
        if len(self._segments) < 2:
            return None
        segment = self._segments[0]
        self._owned.remove(segment.path)
        del self._segments[0], self._bases[0]
        self._writing.pop(segment.base, None)
        if file := self._open.pop(segment.base, None):
            file.close()
        return segment

    def close(self) -> None:
        """Close all files; remove the one that was created in advance."""
        if self._prepared is not None:
            self._prepared = None
            base = self.base + len(self._buffer)
            with suppress(DiskError):  # Otherwise the next start removes it.
                self._owned.remove(f"{DIRECTORY}/{segment_name(base)}")
        self._writing.clear()
        self._file, self._buffer, self.room_end = None, memoryview(b""), 0
        self.array = _NO_BYTES
        self._readahead = EndReadahead()
        self._limit = 0
        super().close()


def _clear(file: WritableFile, start: int) -> None:
    """Zero the bytes from `start` on if they are not zero."""
    for data_start, data_end in file.data_ranges(start, file.size):
        for at in range(data_start, data_end, _ZERO_STEP):
            length = min(_ZERO_STEP, data_end - at)
            if file.read(at, length).strip(b"\0"):
                file.write(at, bytes(length))
