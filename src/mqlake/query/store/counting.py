"""Count the messages that a query selects by walking the log, to split it after so many of them.

Spark starts a process for each streaming query, and the compiled kernels take most of a second to
load. Plain Python counts a quiet topic's micro-batches before that.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator

from mqlake.dispatch.batch import Batch
from mqlake.dispatch.kernel import Kernel, load
from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.jobs.bodies.inner_batches import split
from mqlake.kernels.choice import chosen
from mqlake.query.store.access.stretches import SegmentStretch, Stretch, in_segments
from mqlake.query.store.row_filter import RowFilter
from mqlake.store.log.segments import CommitLog, Segment

FEW = 1 << 20
"""Bytes of the log that a process walks in plain Python before it loads the compiled kernels."""

_KERNELS = "mqlake.dispatch.compiled.calls"


class _WalkedBytes:
    """How many bytes of the log this process has walked in plain Python."""

    bytes = 0


def cuts(
    log: CommitLog, stretch: Stretch, row_filter: RowFilter, most: int, *, is_split: bool
) -> Iterator[int]:
    """Yield where to split a stretch so that each part has at most `most` selected messages.

    Bodies are not checked: a damaged message counts, too. Splits are at boundaries within the
    stretch, ascending. An inner batch stays in one part, which may then have more messages.

    Args:
        is_split: whether messages of an inner batch count one by one.

    Raises:
        FormatError: an inner batch must be decompressed, and the package of its codec is missing.
    """
    room, last = most, stretch[0]
    for piece in in_segments(log, [stretch]):
        for batch in _batches(log, piece, row_filter.want, is_split=is_split):
            records = row_filter.choose(batch).records
            ends: list[int] = (records["physical_offset"] + records["size"]).tolist()
            while len(ends) > room:
                last = ends[room - 1] if room else last
                yield last
                # All messages of an inner batch end where it ends.
                ends, room = ends[bisect_right(ends, last) :], most
            room -= len(ends)
            last = ends[-1] if ends else last


def count(
    log: CommitLog, stretch: Stretch, row_filter: RowFilter, enough: int, *, is_split: bool
) -> int:
    """Return how many selected messages a stretch has; stop at `enough`.

    Args and Raises are as for `cuts`.
    """
    found = 0
    for piece in in_segments(log, [stretch]):
        for batch in _batches(log, piece, row_filter.want, is_split=is_split):
            found += len(row_filter.choose(batch).records)
            if found >= enough:
                return found
    return found


def boundary_by_walk(log: CommitLog, start: int, position: int) -> int | None:
    """Return where a record starts at or after a position, walking from a boundary before it.

    None if only a search could find it.
    """
    for piece in list(in_segments(log, [(start, position)]))[-1:]:
        scan = _scan(log, piece, Want.LOCATE)
        if scan is None:
            return None
        for _ in scan:
            pass
        return None if scan.gaps and scan.gaps[-1].open else scan.stop
    return None


def _batches(
    log: CommitLog, piece: SegmentStretch, want: Want, *, is_split: bool
) -> Iterator[Batch]:
    scan = _scan(log, piece, want, limit=piece.end)
    for batch in scan or ():
        yield from split(batch) if is_split else (batch,)


def _scan(
    log: CommitLog, piece: SegmentStretch, want: Want, limit: int | None = None
) -> SegmentScan | None:
    """Return a scan of a piece that does not check bodies; None if its file is gone."""
    file = log.file(_segment(log, piece))
    if file is None:
        return None
    return SegmentScan(
        file,
        piece.base,
        piece.start,
        piece.end,
        exact=True,
        crc=False,
        want=want,
        limit=limit,
        kernel=_kernel(piece.end - piece.start),
    )


def _kernel(size: int) -> Kernel | None:
    """Return the kernels in plain Python while few bytes were walked, else None for the default."""
    if chosen() is not None or _KERNELS in sys.modules:
        return None
    _WalkedBytes.bytes += size
    return load("reference") if _WalkedBytes.bytes <= FEW else None


def _segment(log: CommitLog, piece: SegmentStretch) -> Segment:
    segment = log.segment_at(piece.start)
    assert segment is not None
    return segment
