"""Where the log ends, and which gaps in it are damage."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

from mqlake.dispatch.gap import Gap
from mqlake.formats.damage import Damage
from mqlake.formats.file_name import segment_name
from mqlake.formats.record import FAULT_REASONS, Fault
from mqlake.store.log_end import find_end
from mqlake.store.segments import CommitLog


def log_end(log: CommitLog, gaps: Iterable[Gap], recovery_start: int) -> int:
    """Return the physical offset where RocketMQ's recovery ends the log.

    What lies behind it is lost to RocketMQ. Gaps before the place where recovery starts it does not
    see, and a few kinds of gap it passes over: `mqlake.store.log_end` judges.
    """
    breaks = [a.end for a, b in pairwise(log.segments) if a.end != b.base]
    suspects = [gap.physical_offset for gap in gaps if gap.fault is not Fault.BLANK]
    first = min((at for at in (*suspects, *breaks) if at >= recovery_start), default=log.limit)
    return find_end(log, first).offset if log.segment_at(first) else first


def damage(log: CommitLog, gaps: Iterable[Gap], last_record: int) -> list[Damage]:
    """Return the gaps that are damage: all but unwritten space with no record behind it."""
    bases = [segment.base for segment in log.segments]
    found = list(log.damage)
    for gap in gaps:
        if gap.all_zero and gap.physical_offset > last_record:
            continue
        base = bases[bisect_right(bases, gap.physical_offset) - 1]
        path = f"commitlog/{segment_name(base)}"
        reason = FAULT_REASONS[gap.fault]
        found.append(Damage(path, gap.physical_offset - base, gap.length, reason))
    return found
