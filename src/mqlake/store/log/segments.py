"""The commit log as one sequence of bytes over its segment files (docs/formats/file_name.md).

Opening reads only names and sizes. A segment is opened when one of its bytes is read, and stays
readable when the broker deletes it afterwards.
"""

from __future__ import annotations

import errno
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from mqlake.dispatch.record_view import record_view
from mqlake.errors import DiskError, FormatError, StoreError, raise_passing
from mqlake.formats import record
from mqlake.formats.damage import Damage
from mqlake.formats.file_name import parse_segment_name
from mqlake.formats.record import Fault, Layout, Record
from mqlake.storage.protocol import Directory, ReadableFile

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes

DIRECTORY = "commitlog"

# Each open segment costs two descriptors: the file's and its mapping's.
_MOST_OPEN = 64

_MOST_OFFSET = (1 << 63) - 1


class Segment(NamedTuple):
    """One file: its name, and the physical offsets of its first byte and just past its last."""

    name: str
    base: int
    end: int

    @property
    def path(self) -> str:
        return f"{DIRECTORY}/{self.name}"


class SegmentPosition(NamedTuple):
    """A position inside a segment: the segment's bytes, and the byte in them."""

    segment: Segment
    view: memoryview
    at: int

    @property
    def end(self) -> int:
        """The bytes of the segment: records end at or before their end."""
        return min(len(self.view), self.segment.end - self.segment.base)


class CommitLog:
    """The segments of a store, ascending.

    Args:
        found: the segments as `find_segments` returns them.

    Attributes:
        damage: what is wrong with the sizes of files.
    """

    def __init__(self, directory: Directory, found: Sequence[Segment]) -> None:
        self._directory = directory
        self._open: OrderedDict[int, ReadableFile] = OrderedDict()
        self._take_segments(found)

    def refresh(self) -> None:
        """List the directory again: segments may have come, gone or grown."""
        found = find_segments(self._directory)
        self._close_segments()
        self._take_segments(found)

    def _take_segments(self, found: Sequence[Segment]) -> None:
        self.damage = list(_size_damage(found))
        self._segments = _without_overlap(found)
        self._bases = [segment.base for segment in self._segments]

    def close(self) -> None:
        """Close all files."""
        self._close_segments()

    def _close_segments(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    @property
    def segments(self) -> list[Segment]:
        """All segments, ascending."""
        return self._segments

    @property
    def min_offset(self) -> int:
        """Physical offset of the first existing byte; 0 in an empty log."""
        return self._segments[0].base if self._segments else 0

    @property
    def limit(self) -> int:
        """Physical offset just past the last file; most of the last file may be unwritten."""
        return self._segments[-1].end if self._segments else 0

    @property
    def segment_size(self) -> int | None:
        """Size of a whole segment in bytes, None in an empty log."""
        return _whole_size(self._segments)

    def segment_at(self, offset: int) -> Segment | None:
        """Return the segment that contains a physical offset."""
        number = bisect_right(self._bases, offset) - 1
        if number < 0 or offset >= self._segments[number].end:
            return None
        return self._segments[number]

    def segment_after(self, segment: Segment) -> Segment | None:
        """Return the next segment, even if bytes between the two are missing."""
        number = bisect_right(self._bases, segment.base)
        return self._segments[number] if number < len(self._segments) else None

    def file(self, segment: Segment) -> ReadableFile | None:
        """Return the segment's open file, None if it no longer exists or cannot be opened.

        Raises:
            DiskError: the process has no descriptor for it now.
        """
        try:
            return self._open_file(segment)
        except StoreError as error:
            raise_passing(error)
            return None

    def existing_file(self, segment: Segment) -> ReadableFile | None:
        """Return the segment's open file, None only if it no longer exists.

        Raises:
            DiskError: the disk refused to open it: its messages are not lost.
        """
        try:
            return self._open_file(segment)
        except DiskError as error:
            if error.errno != errno.ENOENT:
                raise
        except StoreError:
            pass
        return None

    def mapped(self, segment: Segment) -> Bytes | None:
        """Return a segment's bytes if this process appends to it, and so has mapped it."""
        del segment
        return None

    def _open_file(self, segment: Segment) -> ReadableFile:
        file = self._open.get(segment.base)
        if file is None:
            file = self._open[segment.base] = self._directory.open(segment.path)
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(segment.base)
        return file

    def place(self, offset: int) -> SegmentPosition | None:
        """Return the position of a physical offset, None if there is no such byte."""
        segment = self.segment_at(offset)
        file = segment and self.file(segment)
        if not segment or not file:
            return None
        at = offset - segment.base
        view = record_view(file, at, segment.end - segment.base)
        # The file may have been cut since it was listed.
        return SegmentPosition(segment, view, at) if at < len(view) else None

    def check(self, offset: int, *, crc: bool = True) -> tuple[Fault, Layout | None]:
        """Check the record at a physical offset; SHORT if there is no such byte."""
        place = self.place(offset)
        if place is None:
            return Fault.SHORT, None
        return record.check(place.view, place.at, place.end, offset, crc=crc)

    def record(self, offset: int) -> Record | None:
        """Return the good record that starts at a physical offset, otherwise None."""
        place = self.place(offset)
        if place is None:
            return None
        try:
            found = record.decode(place.view, place.at, place.end)
        except FormatError:
            return None
        return found if found.physical_offset == offset else None


def open_log(directory: Directory) -> CommitLog:
    """Return the log of a directory, for reading.

    Raises:
        StoreError: the directory cannot be read.
    """
    return CommitLog(directory, find_segments(directory))


def find_segments(directory: Directory) -> list[Segment]:
    """Return the segments of a directory according to their names and sizes, ascending.

    Raises:
        StoreError: the directory cannot be read.
    """
    return list(_segments(directory))


def _segments(directory: Directory) -> Iterator[Segment]:
    for name in directory.names(DIRECTORY):
        base = parse_segment_name(name)
        if base is not None:
            try:
                size = directory.size(f"{DIRECTORY}/{name}")
            except DiskError as error:
                if error.errno != errno.ENOENT:
                    raise  # The file exists: a log without it would lose its messages.
                continue  # The file was deleted since it was listed.
            except StoreError:
                continue
            if base + size <= _MOST_OFFSET:
                yield Segment(name, base, base + size)


def _without_overlap(segments: Sequence[Segment]) -> list[Segment]:
    """Cut bytes that a next segment also contains, and drop empty files."""
    cut = [
        segment._replace(end=min(segment.end, following.base))
        for segment, following in pairwise(segments)
    ]
    return [segment for segment in [*cut, *segments[-1:]] if segment.end > segment.base]


def _whole_size(segments: Sequence[Segment]) -> int | None:
    """Return the size of most files and most distances between them; on a tie, the larger one."""
    sizes = Counter(segment.end - segment.base for segment in segments)
    sizes.update(following.base - segment.base for segment, following in pairwise(segments))
    return max(sizes, key=lambda size: (sizes[size], size)) if sizes else None


def _size_damage(segments: Sequence[Segment]) -> Iterator[Damage]:
    # Empty files at the end were created, but never written: RocketMQ removes such a file.
    used = [number for number, each in enumerate(segments, 1) if each.end > each.base]
    segments = segments[: max(used, default=0)]
    whole = _whole_size(segments)
    for segment in segments:
        size = segment.end - segment.base
        if size != whole:
            reason = f"this file has {size} bytes, but the others have {whole}"
            yield Damage(segment.path, min(size, whole or 0), abs(size - (whole or 0)), reason)
    for segment, following in pairwise(segments):
        missing = following.base - segment.base - (whole or 0)
        if missing > 0:
            reason = f"{missing} bytes of the log are missing before this file"
            yield Damage(following.path, 0, 0, reason)
