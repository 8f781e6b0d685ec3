"""What was added to totals since they last arrived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import MetricType, Sample

_Key = tuple[str, tuple[str, ...]]


class _ExportedTotals(NamedTuple):
    """A total that has arrived, and when that was in seconds since 1970."""

    value: float | Histogram
    time: float


class Deltas:
    """Remembers the totals that have arrived. For one thread.

    Args:
        begin: since when totals count, in seconds since 1970.
    """

    def __init__(self, begin: float) -> None:
        self._begin = begin
        self._sent: dict[_Key, _ExportedTotals] = {}

    def begin_of(self, sample: Sample) -> float:
        """Return since when the difference of a sample counts, in seconds since 1970."""
        sent = self._sent.get(_key(sample))
        return self._begin if sent is None else sent.time

    def of(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return gauges as they are, and of totals what was added to them."""
        return [
            each if each.metric.kind is MetricType.GAUGE else each._replace(value=self._added(each))
            for each in samples
        ]

    def arrived(self, samples: Sequence[Sample], now: float) -> None:
        """Note the totals of samples that arrived, as they were at a time."""
        for each in samples:
            if each.metric.kind is not MetricType.GAUGE:
                value = each.value.copy() if isinstance(each.value, Histogram) else each.value
                self._sent[_key(each)] = _ExportedTotals(value, now)

    def complete(self, samples: Sequence[Sample], now: float) -> None:
        """Note that all samples of a time have arrived: totals that they lack are forgotten."""
        self._begin = now
        self._sent = {key: self._sent[key] for key in map(_key, samples) if key in self._sent}

    def _added(self, sample: Sample) -> float | Histogram:
        value, sent = sample.value, self._sent.get(_key(sample))
        before = None if sent is None else sent.value
        if isinstance(value, Histogram):
            return _difference(value, before) if isinstance(before, Histogram) else value
        if before is None or isinstance(before, Histogram) or before > value:
            return value  # It counts from its beginning.
        return value - before


def _key(sample: Sample) -> _Key:
    return sample.metric.name, sample.labels


def _difference(value: Histogram, before: Histogram) -> Histogram:
    counts = [now - then for now, then in zip(value.counts, before.counts, strict=True)]
    if min(counts) < 0:
        return value
    found = value.copy()
    found.counts, found.total = counts, value.total - before.total
    return found
