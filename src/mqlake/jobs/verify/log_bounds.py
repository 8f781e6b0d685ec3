"""Find which entries without a record point to damage, and which point outside the log."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mqlake.jobs.queues.intervals import Interval, Intervals
from mqlake.jobs.verify.findings import EntryFindings


class Stretches:
    """Half-open stretches of the log, queried with many physical offsets in one call."""

    def __init__(self, stretches: Iterable[Interval]) -> None:
        disjoint = list(Intervals(sorted(stretches)))
        self._starts = np.array([start for start, _ in disjoint], np.int64)
        self._ends = np.array([end for _, end in disjoint], np.int64)

    def hold(self, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each offset whether it is in a stretch."""
        if not len(self._starts):
            return np.zeros(len(offsets), np.bool_)
        index = np.searchsorted(self._starts, offsets, "right") - 1
        return (index >= 0) & (offsets < self._ends[index])


class LogBounds:
    """The log [first, end), physical offsets, and the stretches in it without a good record."""

    def __init__(self, log: Interval, damaged: Iterable[Interval]) -> None:
        self._first, self._end = log
        self._damaged = Stretches(damaged)

    def sort_out(
        self,
        offsets: NDArray[np.int64],
        chosen: NDArray[np.bool_],
        findings: EntryFindings,
        dead_before: int = 0,
    ) -> list[int]:
        """Count the chosen entries, by physical offset; return the numbers of the dangling ones.

        Args:
            dead_before: records before this physical offset belong to a deleted topic.
        """
        expired = chosen & (offsets < self._first)
        dead = chosen & ~expired & (offsets < dead_before)
        findings.dead += int(np.count_nonzero(dead))
        chosen = chosen & ~dead
        stale = chosen & (offsets >= self._end)
        lost = chosen & ~expired & ~stale & self._damaged.hold(offsets)
        findings.expired += int(np.count_nonzero(expired))
        findings.stale += int(np.count_nonzero(stale))
        findings.lost += int(np.count_nonzero(lost))
        return np.flatnonzero(chosen & ~expired & ~stale & ~lost).tolist()
