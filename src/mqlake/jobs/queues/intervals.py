"""Disjoint half-open intervals of integers, such as the queue offsets of a queue."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

Interval = tuple[int, int]


class Intervals:
    """A set of integers, stored as its sorted, disjoint stretches."""

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in intervals:
            self.add(start, end)

    def __iter__(self) -> Iterator[Interval]:
        return zip(self._starts, self._ends, strict=True)

    def __len__(self) -> int:
        """Return the number of stretches."""
        return len(self._starts)

    @property
    def count(self) -> int:
        """The number of integers in all stretches."""
        return sum(self._ends) - sum(self._starts)

    @property
    def first(self) -> int:
        """The smallest number; 0 if the set is empty."""
        return self._starts[0] if self._starts else 0

    @property
    def end(self) -> int:
        """One more than the largest number; 0 if the set is empty."""
        return self._ends[-1] if self._ends else 0

    def add(self, start: int, end: int) -> None:
        """Add [start, end) to the set."""
        if not self._ends or start > self._ends[-1]:
            self._starts.append(start)
            self._ends.append(end)
        elif start == self._ends[-1]:
            self._ends[-1] = end
        else:
            low = bisect_left(self._ends, start)
            high = bisect_right(self._starts, end)
            if low < high:
                start = min(start, self._starts[low])
                end = max(end, self._ends[high - 1])
            self._starts[low:high] = [start]
            self._ends[low:high] = [end]

    def missing(self, start: int, end: int) -> list[Interval]:
        """Return the stretches of [start, end) that are not in the set, ascending."""
        if not self._ends or start >= self._ends[-1]:
            return [(start, end)] if start < end else []
        free: list[Interval] = []
        for index in range(bisect_right(self._ends, start), len(self._starts)):
            if self._starts[index] >= end:
                break
            if start < self._starts[index]:
                free.append((start, self._starts[index]))
            start = self._ends[index]
        if start < end:
            free.append((start, end))
        return free

    def overlaps(self, start: int, end: int) -> bool:
        """Return whether any number of [start, end) is in the set."""
        index = bisect_right(self._ends, start)
        return index < len(self._starts) and self._starts[index] < end
