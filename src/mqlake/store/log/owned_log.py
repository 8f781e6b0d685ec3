"""The commit log of a store that this process writes (docs/live-store.md).

Upstream: `CommitLog`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mqlake.dispatch.batch import Bytes
from mqlake.errors import DiskError, StoreError
from mqlake.formats import record
from mqlake.formats.file_name import segment_name
from mqlake.storage.protocol import OwnedDirectory, ReadableFile, WritableFile
from mqlake.store.log.end_readahead import EndReadahead
from mqlake.store.log.owned_segment_files import OwnedSegmentFiles
from mqlake.store.log.pending_sync import PendingSync
from mqlake.store.log.segments import CommitLog, Segment, find_segments

# Room is reserved ahead, so that most records need not check for it.
_RESERVE_AHEAD = 1 << 20
# The size of a record's first field, in bytes.
_SIZE_SIZE = 4
# For this many bytes or more, a write call costs less than a fault for each page of the mapping.
_LONG = 16 << 10
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


class OwnedCommitLog(CommitLog):
    """The segments of a store, ascending, and the end at which records are appended.

    For one thread; the job that `unsynced` returns may run in another. A store keeps the segment
    size that its files have, whatever the settings say.

    Attributes:
        files: the files that are written.
        end: physical offset of the next record (or a file's end, before a roll). Before
            `recover_to`, it is the end of the last file, and nothing may be appended.
        flushed: physical offset before which everything is durable.
        base: physical offset of the last file, to which records are appended.
        array: u8[n], the bytes of that file, for a caller that writes a record itself: before
            `room_end`, in the order of `append_record`. It then calls `changed` and moves `end`.
        room_end: position in that file before which the disk has room for records.
        changed: called with changed bytes (position, length), if not None.

    Args:
        found: the segments as `find_segments` returns them.
        file_size: bytes of a new segment if the log is empty.
    """

    def __init__(self, directory: OwnedDirectory, found: Sequence[Segment], file_size: int) -> None:
        super().__init__(directory, found)
        self._owned = directory
        self.files = OwnedSegmentFiles(directory, self.segment_size or file_size)
        self._file: WritableFile | None = None
        self._buffer, self.array = memoryview(b""), _NO_BYTES
        self._written: Callable[[int, int], None]
        self.changed: Callable[[int, int], None] | None = None
        self.base = self.end = self.flushed = self.limit
        self._limit = self.room_end = 0
        # Position in the last file before which a write that failed may have left bytes.
        self._remains_end = 0
        self._readahead = EndReadahead()

    @property
    def largest_record(self) -> int:
        """Maximum size of one record, or of one batch: a blank record must fit after it."""
        return self.files.size - record.FRAME_SIZE

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
            self.append_by_call(memoryview(data))
        else:
            self.append_record(len(data), data[:_SIZE_SIZE], data[_SIZE_SIZE:])

    def append_by_call(self, data: memoryview) -> None:
        """Append records, in the order of `append_record`, without the mapping.

        Raises:
            DiskError: as for `append`.
        """
        self.append_parts(len(data), data[:_SIZE_SIZE], (data[_SIZE_SIZE:],))

    def append_parts(self, size: int, first: Buffer, parts: Sequence[Buffer]) -> None:
        """Append like `append_record`, without the mapping: parts follow the first field.

        Raises:
            DiskError: as for `append`.
        """
        if self.position + size > self.room_end:
            self.make_room(size)
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
        if self._file is not None and 2 * self.position > len(self._buffer):
            self.files.prepare(self.base + len(self._buffer))

    # Bytes that another store has appended

    @property
    def file_end(self) -> int:
        """Physical offset just past the file of the next record."""
        return self.base + (len(self._buffer) or self.files.size)

    def begin_at(self, base: int) -> None:
        """Let a log without a record begin at a physical offset.

        Raises:
            DiskError: a file that begins elsewhere cannot be removed.
        """
        if self._segments and self.base == base:
            return
        if self._segments or self._file is not None or self.files.is_prepared:
            self._drop_file()
            try:
                self.files.forget()
            finally:
                self.refresh()
        self.base = self.end = self.flushed = base

    def _drop_file(self) -> None:
        self._file, self._buffer, self.array = None, memoryview(b""), _NO_BYTES
        self._readahead = EndReadahead()
        self._limit = self.room_end = 0

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
        self._writing_file()
        self._roll(0, head)

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

    def _roll(self, size: int, blank_head: bytes | None = None) -> None:
        base, room_end = self.base + len(self._buffer), self.room_end
        try:
            file = self.files.following(base)
            mapping = file.mapping()
            self._reserve(file, 0, size)
            self._end_file(blank_head)
        except DiskError as error:
            self.room_end = room_end
            raise NextFileError(str(error), error.errno) from error
        self._use(file, Segment(segment_name(base), base, base + file.size), mapping)
        self.end = base

    def _end_file(self, blank_head: bytes | None) -> None:
        """Fill the rest of the file with a blank record, of which only the head is written."""
        at = self.position
        left = len(self._buffer) - at
        if self._file is not None and left >= record.FRAME_SIZE:
            head = blank_head or record.encode_blank_head(left)
            self._file.reserve(at, record.FRAME_SIZE)
            # As in `append_record`: the size comes last.
            for start, end in ((_SIZE_SIZE, len(head)), (0, _SIZE_SIZE)):
                self._buffer[at + start : at + end] = head[start:end]
                self._file.written(at + start, end - start)

    def _use(self, file: WritableFile, segment: Segment, mapping: memoryview) -> None:
        if self._bases and self._bases[-1] == segment.base:
            self._segments[-1] = segment
        else:
            self._segments.append(segment)
            self._bases.append(segment.base)
        self.files.use(segment.base, file)
        self._file = file
        self._written = file.written
        self._readahead.begin(mapping, max(0, self.end - segment.base))
        self.base, self._buffer, self._remains_end = segment.base, mapping, 0
        self.array = np.frombuffer(mapping, np.uint8)
        self.changed = file.written if file.is_watched else None
        self._limit = len(mapping) - record.FRAME_SIZE

    # Sync

    def unsynced(self) -> PendingSync:
        """Return a job that makes everything up to `end` durable, including names of files."""
        end = self.end
        if end == self.flushed and not self.files.has_new_names:
            return PendingSync(self._owned)

        def note() -> None:
            self.flushed = max(self.flushed, end)

        return self.files.pending_sync(note)

    # Read

    def file(self, segment: Segment) -> ReadableFile:
        """Return the segment's open file.

        Raises:
            StoreError: the file cannot be opened. It exists, so this must not look like the log's
                end.
        """
        return self.files.writing.get(segment.base) or self._open_file(segment)

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
        self.files.remove_after(end)
        self.refresh()
        self.end = self.flushed = self.base = end
        self.files.sync(self._segments[:-1], dirty_from)
        if self._segments:
            segment, file = self.files.cut(self._segments[-1], end)
            if file is not None:
                self._use(file, segment, file.mapping())
        self.files.sync_names(with_folder=True)

    def remove_first(self) -> Segment | None:
        """Remove the first file, unless it is the last; return it.

        The removal is durable once the names in `DIRECTORY` are synced.

        Raises:
            DiskError: the system refused it; the file still exists.
        """
        if len(self._segments) < 2:
            return None
        segment = self._segments[0]
        self.files.remove(segment)
        del self._segments[0], self._bases[0]
        if file := self._open.pop(segment.base, None):
            file.close()
        return segment

    def close(self) -> None:
        """Close all files; remove the one that was created in advance."""
        self.files.close()
        self._drop_file()
        super().close()
