"""Find where the log ends, and which gaps in it are damage."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from mqlake.dispatch.gap import Gap
from mqlake.formats.damage import Damage
from mqlake.formats.record import FAULT_REASONS, Fault
from mqlake.store.log.end import find_end
from mqlake.store.log.file_end import end_of_data
from mqlake.store.log.segments import CommitLog, Segment


def log_end(log: CommitLog, gaps: Iterable[Gap], recovery_start: int) -> int:
    """Return the physical offset at which RocketMQ's recovery ends the log.

    RocketMQ loses everything after it. It does not see gaps before the position at which recovery
    starts, and skips a few kinds of gap: `mqlake.store.log.end` decides.
    """
    breaks = [a.end for a, b in pairwise(log.segments) if a.end != b.base]
    suspects = [gap.physical_offset for gap in gaps if gap.fault is not Fault.BLANK]
    first = min((at for at in (*suspects, *breaks) if at >= recovery_start), default=log.limit)
    return find_end(log, first).offset if log.segment_at(first) else first


def damage(log: CommitLog, gaps: Iterable[Gap], last_record: int) -> list[Damage]:
    """Return the gaps that are damage: all except unwritten space without a record after it."""
    found = list(log.damage)
    for gap in gaps:
        segment = log.segment_at(gap.physical_offset)
        if segment is None or (gap.all_zero and gap.physical_offset > last_record):
            continue
        at = gap.physical_offset - segment.base
        length = _damaged_bytes(log, segment, at, at + gap.length)
        found.append(Damage(segment.path, at, length, FAULT_REASONS[gap.fault]))
    return found


def _damaged_bytes(log: CommitLog, segment: Segment, start: int, end: int) -> int:
    """Return the length of a gap, without the unwritten rest of the segment."""
    file = log.file(segment)
    if file is None or end < segment.end - segment.base:
        return end - start
    return (end_of_data(file, start, end) - start) or end - start
