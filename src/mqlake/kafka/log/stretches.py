"""Stretches of a partition, by offset: which may have records of a time, and how to split one.

Whatever indexes and batches say, the stretches that are left or result from a split have all
requested records. At worst, more is read than necessary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats.kafka.offset_index import OffsetPosition
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.log.segment import LogSegment


class OffsetStretch(NamedTuple):
    """The records from offset `start` to before `end`, which take about `size` bytes of log."""

    start: int
    end: int
    size: int = 0


def since(partition: Partition, stretch: OffsetStretch, timestamp: int) -> list[OffsetStretch]:
    """Return the parts of a stretch outside of which all records are before a time (ms).

    By the time indexes, as a broker would look for the time.
    """
    found: list[OffsetStretch] = []
    for segment, start, end in _in_segments(partition, stretch):
        if segment.largest_timestamp() < timestamp:
            segment.close()
            continue
        entry = segment.time_index.lookup(timestamp - 1)
        # An entry has the largest time of all records up to its offset.
        first = max(start, entry.offset + 1) if entry.timestamp >= 0 else start
        if found and found[-1].end == first:
            first = found.pop().start
        if first < end:
            found.append(OffsetStretch(first, end))
        segment.close()
    return found


def cut(partition: Partition, stretch: OffsetStretch, size: int) -> Iterator[OffsetStretch]:
    """Yield a stretch in pieces of about `size` bytes, each within one segment."""
    for segment, start, end in _in_segments(partition, stretch):
        is_whole = end == partition.log_end_offset or end < stretch.end
        last = segment.size if is_whole else segment.position_of(end)
        yield from _cut_segment(segment, start, end, last, size)
        segment.close()


def _cut_segment(
    segment: LogSegment, start: int, end: int, last: int, size: int
) -> Iterator[OffsetStretch]:
    position = 0 if start == segment.base_offset else segment.position_of(start)
    while last - position > size + size // 4:
        place = _boundary(segment, position + size)
        if place is None or not start < place[0] < end or not position < place[1] < last:
            break
        offset, at = place
        yield OffsetStretch(start, offset, at - position)
        start, position = offset, at
    yield OffsetStretch(start, end, last - position)


def _boundary(segment: LogSegment, position: int) -> tuple[int, int] | None:
    """Return first offset and position of an indexed batch from a position on."""
    entry = segment.offset_index.upper_bound(OffsetPosition(0, position), 0)
    batch = segment.log.batch_at(entry.position) if entry else None
    if entry is None or batch is None or not segment.is_batch(entry):
        return None
    try:
        return segment.log.first_offset(batch), entry.position
    except FormatError:
        return None


def _in_segments(
    partition: Partition, stretch: OffsetStretch
) -> Iterator[tuple[LogSegment, int, int]]:
    """Yield each segment that has offsets of a stretch, and which ones."""
    segments = partition.segments
    bases = [segment.base_offset for segment in segments[1:]] + [stretch.end]
    for segment, behind in zip(segments, bases, strict=True):
        start, end = max(stretch.start, segment.base_offset), min(stretch.end, behind)
        if start < end:
            yield segment, start, end
