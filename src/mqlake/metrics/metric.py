"""A metric, and its value under each combination of labels.

Sources: OpenTelemetry's data model, and the mapping of its names to Prometheus's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from mqlake.metrics.histogram import Histogram


class MetricType(Enum):
    """How a metric's values are to be read."""

    GAUGE = "gauge"
    """A value now."""
    COUNTER = "counter"
    """A total since the start, which only grows."""
    HISTOGRAM = "histogram"
    """How many values since the start lie within each bound, and their sum."""


class MetricFamily(NamedTuple):
    """What is measured.

    Attributes:
        name: without its unit, as OpenTelemetry names it, such as "rocketmq_storage_size".
        help: one sentence.
        unit: such as "bytes" or "milliseconds"; "" for a number of things.
        labels: the names of its labels, in the order of a sample's values.
    """

    name: str
    kind: MetricType
    help: str
    unit: str = ""
    labels: tuple[str, ...] = ()

    @property
    def prometheus_name(self) -> str:
        """The name that Prometheus gives it: the unit is added, and `_total` to counters."""
        name = self.name.removesuffix("_total")
        if self.unit and not name.endswith(f"_{self.unit}"):
            name = f"{name}_{self.unit}"
        return f"{name}_total" if self.kind is MetricType.COUNTER else name


class Sample(NamedTuple):
    """The value of a metric under some labels: a histogram if the metric is one, else a number."""

    metric: MetricFamily
    value: float | Histogram
    labels: tuple[str, ...] = ()

    def named(self, common: Mapping[str, str]) -> dict[str, str]:
        """Return all labels by name.

        Args:
            common: labels of all samples of the program.
        """
        return {**common, **dict(zip(self.metric.labels, self.labels, strict=True))}


def by_metric(samples: Iterable[Sample]) -> Iterator[tuple[MetricFamily, Iterator[Sample]]]:
    """Yield each metric with its samples, in the order of the metrics' names.

    The samples of a metric must be read before the next metric is asked for.
    """
    ordered = sorted(samples, key=lambda each: each.metric.name)
    return groupby(ordered, key=lambda each: each.metric)


def summed(samples: Iterable[Sample]) -> list[Sample]:
    """Return samples of which no two have the same metric and labels: their values are added."""
    found: dict[tuple[MetricFamily, tuple[str, ...]], Sample] = {}
    for each in samples:
        key = each.metric, each.labels
        before = found.get(key)
        found[key] = each if before is None else each._replace(value=_sum(before, each))
    return list(found.values())


def _sum(one: Sample, other: Sample) -> float | Histogram:
    if isinstance(one.value, Histogram) and isinstance(other.value, Histogram):
        return one.value.plus(other.value)
    assert not isinstance(one.value, Histogram)
    assert not isinstance(other.value, Histogram)
    return one.value + other.value


def gauge(name: str, text: str, unit: str = "", labels: tuple[str, ...] = ()) -> MetricFamily:
    """Return a metric whose value may rise and fall."""
    return MetricFamily(name, MetricType.GAUGE, text, unit, labels)


def counter(name: str, text: str, unit: str = "", labels: tuple[str, ...] = ()) -> MetricFamily:
    """Return a metric whose value only grows."""
    return MetricFamily(name, MetricType.COUNTER, text, unit, labels)


def histogram(name: str, text: str, unit: str = "", labels: tuple[str, ...] = ()) -> MetricFamily:
    """Return a metric that counts values within bounds."""
    return MetricFamily(name, MetricType.HISTOGRAM, text, unit, labels)
