"""How often values lie within bounds: durations, sizes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts of values since its creation. For one thread.

    Attributes:
        bounds: upper bounds, inclusive, ascending; a value above the last is counted, too.
        counts: how many values lie within each bound and above the one before it; the last number
            is that of values above all bounds.
        total: the sum of the values.
    """

    __slots__ = ("_first", "bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0
        self._first = self.bounds[0]

    @property
    def count(self) -> int:
        """How many values were added."""
        return sum(self.counts)

    def add(self, value: float, count: int = 1) -> None:
        """Count so many equal values."""
        if value <= self._first:  # Most values are: it takes half the time of a search.
            self.counts[0] += count
        else:
            self.counts[bisect_left(self.bounds, value)] += count
        self.total += value * count

    def add_counts(self, counts: Sequence[int], total: float) -> None:
        """Count values of which it is known how many lie within each bound.

        Args:
            counts: as the attribute.
            total: their sum.
        """
        self.counts = [sum(pair) for pair in zip(self.counts, counts, strict=True)]
        self.total += total

    def copy(self) -> Histogram:
        """Return one with the same counts, for another thread."""
        found = Histogram(self.bounds)
        found.counts, found.total = list(self.counts), self.total
        return found

    def plus(self, other: Histogram) -> Histogram:
        """Return one that counts the values of both, which have the same bounds."""
        found = self.copy()
        found.add_counts(other.counts, other.total)
        return found

    def cumulative(self) -> list[int]:
        """Return how many values lie within each bound; the last number is that of all values."""
        found, seen = list[int](), 0
        for count in self.counts:
            seen += count
            found.append(seen)
        return found
