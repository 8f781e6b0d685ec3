"""Totals and histograms by labels, which clients choose: their number has a limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import MetricFamily, Sample

MOST: Final = 10_000
"""Maximum combinations of labels; what has others is not counted."""

Labels = tuple[str, ...]


class Counts:
    """Totals since the start. For one thread."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._found: dict[Labels, int] = {}

    def add(self, labels: Labels, count: int = 1) -> None:
        """Count things that have these labels."""
        found = self._found.get(labels)
        if found is not None:
            self._found[labels] = found + count
        elif len(self._found) < self._most:
            self._found[labels] = count

    def forget(self, labels: Labels) -> None:
        """Drop the total of these labels, if there is one."""
        self._found.pop(labels, None)

    def __iter__(self) -> Iterator[tuple[Labels, int]]:
        """Return the totals, as they are now."""
        return iter(list(self._found.items()))


class Histograms:
    """Histograms since the start. For one thread."""

    def __init__(self, bounds: Sequence[float], most: int = MOST) -> None:
        self._bounds, self._most = bounds, most
        self._found: dict[Labels, Histogram] = {}

    def add(self, labels: Labels, value: float) -> None:
        """Count a value that has these labels."""
        found = self._found.get(labels)
        if found is None:
            if len(self._found) >= self._most:
                return
            found = self._found[labels] = Histogram(self._bounds)
        found.add(value)

    def forget(self, labels: Labels) -> None:
        """Drop the histogram of these labels, if there is one."""
        self._found.pop(labels, None)

    def __iter__(self) -> Iterator[tuple[Labels, Histogram]]:
        """Return copies of the histograms, as they are now."""
        return iter([(labels, found.copy()) for labels, found in list(self._found.items())])


def samples_of(
    counted: Iterable[tuple[MetricFamily, Counts | Histograms]], before: Labels = ()
) -> list[Sample]:
    """Return a sample for each combination of labels of these metrics.

    Args:
        before: labels that all samples have in front of theirs.
    """
    return [
        Sample(metric, value, (*before, *labels))
        for metric, counts in counted
        for labels, value in counts
    ]
