"""Walk a stretch of the commit log: plainly, or with the compiled scan if it is long.

The plain walk needs neither NumPy nor Numba, whose import alone takes longer than walking a small
stretch; both return the same records.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from mqlake.dispatch.answers import SEARCH_ALLOWANCE, SEARCH_ALLOWANCE_RATE
from mqlake.dispatch.record_view import record_view
from mqlake.errors import FormatError
from mqlake.formats import record
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Fault, Layout, Record
from mqlake.storage.protocol import ReadableFile
from mqlake.storage.remote.remote_file import view_of
from mqlake.store.log.segments import CommitLog, Segment, SegmentPosition

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Batch
    from mqlake.dispatch.scan import SegmentScan, Want

SMALL = 16 << 20
"""Bytes of log up to which the plain walk is faster: starting Numba takes over a second, in which
the walk passes 250,000 records.
"""

_MAGIC_START = record.V1_MAGIC.to_bytes(4, "big")[:3]
_SEARCH_CHUNK = 1 << 20

_QUEUE = Struct(
    ">"
    "i"  # queue id
    "i"  # flag
    "q"  # queue offset
    "q"  # physical offset
    "i"  # sys flag
)
_TIMESTAMP = Struct(">q")


Queue = tuple[str, int]
"""A topic and a queue id."""


class Head(NamedTuple):
    """The fields that say where a record belongs; its body has not been checked."""

    physical_offset: int
    size: int
    topic: bytes
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp: int


class WalkStep(NamedTuple):
    """A step of a walk: a record, or the reason why it is not there."""

    offset: int
    fault: Fault
    layout: Layout | None
    place: SegmentPosition

    def head(self) -> Head | None:
        """Return the record's head, or None if its lengths do not agree."""
        if self.layout is None:
            return None
        view, layout = self.place.view, self.layout
        queue_id, _, queue_offset, physical_offset, sys_flag = _QUEUE.unpack_from(
            view, self.place.at + record.QUEUE_ID_AT
        )
        topic = bytes(view[layout.topic_at : layout.topic_at + layout.topic_length])
        (time,) = _TIMESTAMP.unpack_from(view, layout.store_timestamp_at)
        return Head(
            physical_offset,
            layout.size,
            topic,
            queue_id,
            queue_offset,
            sys_flag,
            store_timestamp=time,
        )

    def properties(self) -> bytes:
        """Return the record's encoded properties."""
        if self.layout is None:
            return b""
        at = self.layout.properties_at
        return bytes(self.place.view[at : at + self.layout.properties_length])


def head_at(log: CommitLog, offset: int) -> Head | None:
    """Return the head of the record at a physical offset; its body is not checked."""
    place = log.place(offset)
    if place is None:
        return None
    fault, layout = record.check(place.view, place.at, place.end, offset, crc=False)
    return None if fault else WalkStep(offset, fault, layout, place).head()


def head_of(
    log: CommitLog, log_end: int, queue: Queue, queue_offset: int, physical_offset: int
) -> Head | None:
    """Return the head of the record at a physical offset if it is the expected message."""
    if not log.min_offset <= physical_offset < log_end:
        return None
    head = head_at(log, physical_offset)
    if head is None or (head.topic.decode(), head.queue_id) != queue:
        return None
    return head if head.queue_offset == queue_offset else None


def record_of(
    log: CommitLog, log_end: int, queue: Queue, queue_offset: int, physical_offset: int
) -> Record | None:
    """Return the good record at a physical offset if it is the expected message."""
    place = log.place(physical_offset) if log.min_offset <= physical_offset < log_end else None
    if place is None or place.end - place.at < record.MIN_SIZE:
        return None
    # First: the body of another record, which may be long, need not be checked.
    queue_id, _, stated, *_ = _QUEUE.unpack_from(place.view, place.at + record.QUEUE_ID_AT)
    if queue_id != queue[1] or stated != queue_offset:
        return None
    try:
        found = record.decode(place.view, place.at, place.end)
    except FormatError:
        return None
    is_expected = found.topic == queue[0] and found.physical_offset == physical_offset
    return found if is_expected else None


def walk(log: CommitLog, start: int, end: int, *, crc: bool = False) -> Iterator[WalkStep]:
    """Yield what starts in [start, end): good records, and one step for each stretch without one.

    A record should start at `start`. After a stretch without records, the walk continues at the
    next good record, with bodies checked; a record whose lengths agree is skipped as a whole.
    """
    segment = log.segment_at(start) or _first_from(log, start)
    allowance = _Allowance()
    while segment is not None and max(start, segment.base) < end:
        first = max(start, segment.base)
        yield from _walk_segment(log, segment, first, end, allowance, crc=crc)
        segment = log.segment_after(segment)


def _first_from(log: CommitLog, start: int) -> Segment | None:
    return next((segment for segment in log.segments if segment.base >= start), None)


def _walk_segment(
    log: CommitLog,
    segment: Segment,
    offset: int,
    end: int,
    allowance: _Allowance,
    *,
    crc: bool,
) -> Iterator[WalkStep]:
    end = min(end, segment.end)
    while offset < end:
        place = log.place(offset)
        if place is None:
            return
        fault, layout = record.check(place.view, place.at, place.end, offset, crc=crc)
        if fault is Fault.BLANK and _blank_size(place) > place.end - place.at:
            fault = Fault.SIZE
        yield WalkStep(offset, fault, layout, place)
        if fault is Fault.BLANK:
            return
        if layout:
            offset += layout.size
        else:
            offset = search(log, segment, offset + 1, end, allowance)


def _blank_size(place: SegmentPosition) -> int:
    return int.from_bytes(place.view[place.at : place.at + 4], "big")


class _Allowance:
    """Bytes of bodies that the searches of one walk may still read without finding a record."""

    def __init__(self) -> None:
        self.left = SEARCH_ALLOWANCE


def search(
    log: CommitLog, segment: Segment, start: int, end: int, allowance: _Allowance | None = None
) -> int:
    """Return where the first good record in [start, end) starts, or `end`; holes are skipped.

    Candidates with bodies beyond the allowance are skipped, as in the compiled scan.
    """
    file = log.file(segment)
    if file is None:
        return end
    allowance = allowance or _Allowance()
    at, stop = start - segment.base, end - segment.base
    last = at
    # A record's size may be part of the hole before its magic number.
    for data, hole in file.data_ranges(at, stop + record.FRAME_SIZE):
        first = max(at, data - record.FRAME_SIZE)
        for found in _magics(file, first + record.MAGIC_AT, min(hole, file.size)):
            position = found - record.MAGIC_AT
            if position >= stop:
                return end
            allowance.left += SEARCH_ALLOWANCE_RATE * (position - last)
            last, offset = position, segment.base + position
            view = record_view(file, position, file.size)
            fault, layout = record.check(view, position, len(view), offset, crc=False)
            if fault or layout is None or layout.body_length > allowance.left:
                continue
            if record.check(view, position, len(view), offset)[0] is Fault.GOOD:
                return offset
            allowance.left -= layout.body_length
    return end


def _magics(file: ReadableFile, start: int, end: int) -> Iterator[int]:
    """Yield the positions of possible magic numbers."""
    for base in range(start, end, _SEARCH_CHUNK):
        last = min(base + _SEARCH_CHUNK + len(_MAGIC_START) - 1, end)
        chunk = bytes(view_of(file, base, last)[base:last])
        at = chunk.find(_MAGIC_START)
        while at >= 0:
            yield base + at
            at = chunk.find(_MAGIC_START, at + 1)


def is_small(log: CommitLog, start: int, end: int, most: int = SMALL) -> bool:
    """Return whether [start, end) contains at most `most` bytes of data."""
    size = 0
    for segment, first, last in pieces(log, start, end):
        if end - start <= most:
            return True
        size += sum(hole - data for data, hole in _data(log, segment, first, last))
        if size > most:
            return False
    return True


def _data(log: CommitLog, segment: Segment, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches of physical offsets of a segment that are not holes."""
    file = log.file(segment)
    if file is not None:
        for data, hole in file.data_ranges(start - segment.base, end - segment.base):
            yield segment.base + data, segment.base + hole


def pieces(log: CommitLog, start: int, end: int) -> Iterator[tuple[Segment, int, int]]:
    """Yield (segment, first offset, last offset) of [start, end), ascending."""
    for segment in log.segments:
        first, last = max(start, segment.base), min(end, segment.end)
        if first < last:
            yield segment, first, last


def batches(
    log: CommitLog, start: int, end: int, want: Want, dialect: Dialect = Dialect.V5_3
) -> Iterator[Batch]:
    """Yield the records that start in [start, end) as columns; bodies are not checked."""
    for segment, first, last in pieces(log, start, end):
        scan = segment_scan(log, segment, first, last, want=want, crc=False, dialect=dialect)
        if scan is not None:
            yield from scan


def segment_scan(
    log: CommitLog,
    segment: Segment,
    start: int,
    end: int,
    *,
    want: Want,
    crc: bool,
    dialect: Dialect = Dialect.V5_3,
    exact: bool = True,
    window: int | None = None,
) -> SegmentScan | None:
    """Return the compiled scan of a stretch of one segment, or None if the file is gone."""
    from mqlake.dispatch.scan import SegmentScan
    from mqlake.dispatch.window import DEFAULT_WINDOW

    file = log.file(segment)
    if file is None:
        return None
    return SegmentScan(
        file,
        segment.base,
        start,
        end,
        exact=exact,
        crc=crc,
        want=want,
        dialect=dialect,
        limit=segment.end,
        window=window or DEFAULT_WINDOW,
    )
