"""Stretches of the log that a query reads, and how tasks share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from mqlake.formats.file_name import segment_name
from mqlake.store.log import segments
from mqlake.store.log.scan import pieces
from mqlake.store.log.segments import CommitLog

Stretch = tuple[int, int]
"""Physical offsets [start, end): a record starts at `start`, and none extends beyond `end`."""


class SegmentStretch(msgspec.Struct, frozen=True):
    """A stretch within one segment, whose file begins at physical offset `base`."""

    base: int
    start: int
    end: int

    @property
    def path(self) -> str:
        """The segment's file, relative to the store."""
        return f"{segments.DIRECTORY}/{segment_name(self.base)}"


Share = tuple[SegmentStretch, ...]
"""The input of one task, in log order."""


def size(stretches: Iterable[Stretch]) -> int:
    """Return the bytes of stretches."""
    return sum(end - start for start, end in stretches)


def join(stretches: Iterable[Stretch], closer_than: int = 1) -> list[Stretch]:
    """Return stretches ascending; those that touch or are close become one."""
    found: list[Stretch] = []
    for start, end in sorted(stretches):
        if found and start - found[-1][1] < closer_than:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif start < end:
            found.append((start, end))
    return found


def clip(stretches: Iterable[Stretch], start: int, end: int) -> list[Stretch]:
    """Return the parts of stretches within [start, end), which are boundaries themselves."""
    clipped = ((max(first, start), min(last, end)) for first, last in stretches)
    return [(first, last) for first, last in clipped if first < last]


def common(some: Iterable[Stretch], others: Sequence[Stretch]) -> list[Stretch]:
    """Return what two lists of stretches have in common."""
    return join(both for start, end in some for both in clip(others, start, end))


def without(some: Iterable[Stretch], others: Iterable[Stretch]) -> list[Stretch]:
    """Return the parts of stretches that others lack."""
    found: list[Stretch] = []
    gone = join(others)
    for start, end in some:
        for first, last in clip(gone, start, end):
            found.append((start, first))
            start = last
        found.append((start, end))
    return join(found)


def share(
    stretches: Sequence[Stretch], count: int, boundary: Callable[[int, Stretch], int | None]
) -> list[list[Stretch]]:
    """Split stretches into approximately `count` shares of similar size.

    `boundary` returns where to split at or after a position of a stretch, or None.
    """
    goal = -(-size(stretches) // count) or 1
    shares: list[list[Stretch]] = [[]]
    room = goal
    for start, end in stretches:
        while end - start > room + goal // 4:
            cut = boundary(start + room, (start, end)) if room > goal // 4 else start
            if cut is None or cut >= end:
                break
            if cut > start:
                shares[-1].append((start, cut))
            start, room = cut, goal
            shares.append([])
        shares[-1].append((start, end))
        room -= end - start
        if room <= 0:
            shares.append([])
            room = goal
    return [one for one in shares if one]


def in_segments(log: CommitLog, stretches: Iterable[Stretch]) -> Iterator[SegmentStretch]:
    """Yield the pieces of stretches; bytes between two files are left out."""
    for start, end in stretches:
        for segment, first, last in pieces(log, start, end):
            yield SegmentStretch(segment.base, first, last)


def missing(log: CommitLog, stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return the parts of stretches that are in no file."""
    found: list[Stretch] = []
    for start, end in stretches:
        at = start
        for _, first, last in pieces(log, start, end):
            if first > at:
                found.append((at, first))
            at = last
        if at < end:
            found.append((at, end))
    return found
