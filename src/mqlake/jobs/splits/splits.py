"""Divide the commit log into splits for tasks, and prove that neighbouring splits met exactly.

A split begins at any byte: its scan finds the first record by itself. A record's body may imitate a
record there, so after a pass the splits of a segment are compared (`stitch`): each must begin where
the one before it stopped. If one does not, the pass is discarded and repeated with the true
boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

import msgspec

from mqlake.dispatch.gap import Gap
from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.formats.consume_queue import DEFAULT_DELAY_LEVELS
from mqlake.formats.dialect import Dialect
from mqlake.formats.file_name import segment_name
from mqlake.jobs.splits.sizes import SMALLEST, share_count
from mqlake.storage.protocol import Directory, ReadableFile
from mqlake.store.log.segments import CommitLog


class Span(msgspec.Struct, frozen=True):
    """One segment of the log: physical offsets in bytes, from `base` to `end`.

    Nothing was written at or after `data_end`: the rest is a hole of the file.
    """

    base: int
    data_end: int
    end: int


def spans(log: CommitLog) -> list[Span]:
    """Return the segments of a commit log, and how far each was written."""
    found: list[Span] = []
    for segment in log.segments:
        file = log.existing_file(segment)
        if file is not None:
            last = max((end for _, end in file.data_ranges(0, file.size)), default=0)
            data_end = min(segment.end, segment.base + last)
            found.append(Span(segment.base, data_end, segment.end))
    return found


class Split(msgspec.Struct, frozen=True):
    """The records of a segment that start in [start, end), physical offsets in bytes.

    `exact` says that `start` is known to be the start of a record.
    """

    segment: int
    start: int
    end: int
    exact: bool

    @property
    def path(self) -> str:
        """The segment's file, relative to the store."""
        return f"commitlog/{segment_name(self.segment)}"


class ScannedSplit(msgspec.Struct, frozen=True):
    """The result of scanning a split; physical offsets in bytes.

    It accounts for the bytes from `start`, its first record, to `stop`: each is in a record or in a
    gap. If a scan found nothing, its `start` is at or after the split's end; its gaps are valid
    unless all of the split is inside a record.
    """

    split: Split
    start: int
    stop: int
    gaps: list[Gap]

    @property
    def found(self) -> bool:
        """Return whether there is a record, or the start is known without one."""
        return self.split.exact or self.start < self.split.end

    @property
    def ends_in_gap(self) -> bool:
        """Return whether it stopped at the split's end without being aligned with records."""
        return bool(self.gaps) and self.gaps[-1].open


@contextmanager
def scan_of(
    store: Directory,
    split: Split,
    scanned: list[ScannedSplit],
    *,
    want: Want = Want.DISPATCH,
    dialect: Dialect = Dialect.V5_5,
    delay_levels: Sequence[int] = DEFAULT_DELAY_LEVELS,
) -> Generator[SegmentScan]:
    """Yield the scan of a split, to be iterated over; then `scanned` receives the result."""
    file = store.open(split.path)
    try:
        scan = SegmentScan(
            file,
            split.segment,
            split.start,
            split.end,
            exact=split.exact,
            want=want,
            dialect=dialect,
            delay_levels=delay_levels,
        )
        yield scan
        scanned.append(_scanned(split, scan, file))
    finally:
        file.close()


def _scanned(split: Split, scan: SegmentScan, file: ReadableFile) -> ScannedSplit:
    if split.exact or scan.start < split.end:
        return ScannedSplit(split, scan.start, scan.stop, scan.gaps)
    # The bytes between the records may be the unwritten rest of a file that has no holes.
    again = SegmentScan(
        file, split.segment, split.start, split.end, exact=True, crc=False, want=Want.LOCATE
    )
    for _ in again:
        pass
    return ScannedSplit(split, scan.start, scan.stop, again.gaps)


Job = tuple[Split, ...]


class SplitResult(Protocol):
    """What a task over splits returns, besides its own result."""

    @property
    def scanned(self) -> list[ScannedSplit]:
        """The results of its scans, in the order of its splits."""
        ...


P = TypeVar("P", bound=SplitResult)


def plan(spans: Sequence[Span], parallelism: int, count: int | None = None) -> list[Job]:
    """Divide the segments into about equal shares, one for each task; `count` sets their number.

    Without `count`: one for each core; more if they would exceed 1 GiB, fewer if they would be
    below 4 MiB. A share may contain several segments, or a part of one.
    """
    total = sum(span.data_end - span.base for span in spans)
    slack = 0 if count else SMALLEST // 2
    goal = -(-total // (count or share_count(total, parallelism))) or 1
    jobs: list[list[Split]] = [[]]
    done, share_end = 0, goal
    for span in spans:
        at = span.base
        while done + span.data_end - at > share_end + slack:
            room = share_end - done
            if room > slack:
                jobs[-1].append(Split(span.base, at, at + room, exact=at == span.base))
                at, done = at + room, share_end
            jobs.append([])
            share_end += goal
        jobs[-1].append(Split(span.base, at, span.end, exact=at == span.base))
        done += span.data_end - at
    return [tuple(job) for job in jobs if job]


def clip(jobs: Sequence[Job], end: int) -> list[Job]:
    """Return the jobs without splits that start at or after physical offset `end`."""
    clipped = (
        tuple(
            msgspec.structs.replace(split, end=min(split.end, end))
            for split in job
            if split.start < end
        )
        for job in jobs
    )
    return [job for job in clipped if job]


def stitch(jobs: Sequence[Sequence[ScannedSplit]]) -> list[Job] | None:
    """Return None if all splits met, otherwise the jobs for another pass. `jobs` are in log order.

    In the next pass, the first split of a segment that did not meet extends from the true boundary
    to the segment's end, so that nothing in this segment can fail to meet again.
    """
    previous: dict[int, ScannedSplit] = {}
    boundaries: dict[int, int] = {}
    broken: set[int] = set()
    fixed: list[list[Split]] = []
    for job in jobs:
        fixed.append([])
        for scanned in job:
            split = scanned.split
            if split.segment in broken:
                continue
            boundary = boundaries.get(split.segment, split.start)
            before = previous.get(split.segment)
            if _meets(before, scanned, boundary):
                fixed[-1].append(split)
                if scanned.found or (before is not None and before.ends_in_gap):
                    # The gaps of a split that is all inside a record do not count.
                    previous[split.segment] = scanned
                boundaries[split.segment] = max(boundary, scanned.stop)
            else:
                broken.add(split.segment)
                end = max(s.split.end for j in jobs for s in j if s.split.segment == split.segment)
                if boundary < end:
                    fixed[-1].append(Split(split.segment, boundary, end, exact=True))
    return [tuple(job) for job in fixed if job] if broken else None


def run_until_met(run: Callable[[Sequence[Job]], list[P]], jobs: list[Job]) -> list[P]:
    """Run a pass over the jobs, and repeat it while neighbouring splits did not meet."""
    while True:
        parts = run(jobs)
        fixed = stitch([part.scanned for part in parts])
        if fixed is None:
            return parts
        jobs = fixed


def jobs_of(parts: Sequence[SplitResult]) -> list[Job]:
    """Return the jobs of a pass from the results of its tasks."""
    return [tuple(scanned.split for scanned in part.scanned) for part in parts]


def _meets(before: ScannedSplit | None, scanned: ScannedSplit, boundary: int) -> bool:
    if before is not None and before.ends_in_gap:
        return True
    if not scanned.found:
        # All of it is inside a record that began before it.
        return boundary >= scanned.split.end
    return scanned.start == boundary


def join_gaps(jobs: Sequence[Sequence[ScannedSplit]]) -> list[Gap]:
    """Return the gaps of all splits, ascending; a gap that the end of a split has cut is joined
    again.
    """
    gaps: list[Gap] = []
    for scanned in (scanned for job in jobs for scanned in job):
        is_open = bool(gaps) and gaps[-1].open
        if not scanned.found and not is_open:
            continue
        own = list(scanned.gaps)
        if is_open:
            cut = gaps.pop()
            end, all_zero, still_open = scanned.start, cut.all_zero, False
            if own and own[0].physical_offset <= scanned.start:
                rest = own.pop(0)
                end = rest.physical_offset + rest.length
                all_zero, still_open = all_zero and rest.all_zero, rest.open
            length = end - cut.physical_offset
            gaps.append(cut._replace(length=length, all_zero=all_zero, open=still_open))
        gaps += own
    return gaps
