"""What was added to totals since the last export that arrived."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import MetricType, Sample

_Key = tuple[str, tuple[str, ...]]


class Deltas:
    """Remembers the totals that have arrived. For one thread."""

    def __init__(self) -> None:
        self._sent: dict[_Key, float | Histogram] = {}

    def of(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return gauges as they are, and of totals what was added to them."""
        return [
            each if each.metric.kind is MetricType.GAUGE else each._replace(value=self._added(each))
            for each in samples
        ]

    def arrived(self, samples: Sequence[Sample]) -> None:
        """Note the totals of an export that arrived: those of samples that are gone are dropped."""
        self._sent = {
            _key(each): each.value.copy() if isinstance(each.value, Histogram) else each.value
            for each in samples
            if each.metric.kind is not MetricType.GAUGE
        }

    def _added(self, sample: Sample) -> float | Histogram:
        value, before = sample.value, self._sent.get(_key(sample))
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
