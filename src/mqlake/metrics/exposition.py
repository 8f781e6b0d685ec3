"""Samples as the text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mqlake.errors import MqlakeError
from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import MetricFamily, MetricType, Sample

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.metrics_core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )
    from prometheus_client.metrics_core import (
        Metric as Family,
    )
except ModuleNotFoundError:
    raise MqlakeError("prometheus_client is not installed: pip install 'mqlake[metrics]'") from None

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Collected(NamedTuple):
    """Families as a collector: the library encodes what one returns."""

    families: Iterable[Family]

    def collect(self) -> Iterator[Family]:
        yield from self.families


def encode(samples: Iterable[Sample], common: Mapping[str, str]) -> bytes:
    """Return all samples in Prometheus's text format.

    Args:
        common: labels of all samples, by name.

    It takes about 10 µs a sample, so that many are to be encoded in another thread than an event
    loop's.
    """
    names, values = tuple(common), tuple(common.values())
    families: dict[MetricFamily, Family] = {}
    for sample in samples:
        metric = sample.metric
        family = families.get(metric)
        if family is None:
            family = families[metric] = _family(metric, names)
        _add(family, (*values, *sample.labels), sample.value)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(families.values()))
    return generate_latest(registry)


_FAMILIES = {
    MetricType.COUNTER: CounterMetricFamily,
    MetricType.GAUGE: GaugeMetricFamily,
    MetricType.HISTOGRAM: HistogramMetricFamily,
}


def _family(metric: MetricFamily, common: tuple[str, ...]) -> Family:
    family = _FAMILIES[metric.kind]
    return family(metric.prometheus_name, metric.help, labels=(*common, *metric.labels))


def _add(family: Family, labels: tuple[str, ...], value: float | Histogram) -> None:
    if isinstance(family, HistogramMetricFamily):
        assert isinstance(value, Histogram)
        bounds = (*map(_bound, value.bounds), "+Inf")
        buckets = list(zip(bounds, value.cumulative(), strict=True))
        family.add_metric(labels, buckets, value.total)
    else:
        family.add_metric(labels, value)  # type: ignore[attr-defined]


def _bound(value: float) -> str:
    return repr(float(value))
