"""Samples as OTLP's JSON, one line for each metric.

Sources: OTLP 1.x (JSON Protobuf Encoding). Upstream: `OtlpJsonLoggingMetricExporter`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import MetricFamily, MetricType, Sample, by_metric

_DELTA, _CUMULATIVE = 1, 2
_SECOND: Final = 1_000_000_000


def lines(
    samples: Sequence[Sample],
    common: Mapping[str, str],
    scope: str,
    *,
    begin: float,
    now: float,
    is_delta: bool,
) -> Iterator[str]:
    """Return a JSON text for each metric, as OTLP's `ResourceMetrics`.

    Args:
        common: labels of all samples, by name.
        scope: the name of the meter.
        begin, now: from when until when totals count, in seconds since 1970.
        is_delta: whether totals count since the last export instead of the start.
    """
    temporality = _DELTA if is_delta else _CUMULATIVE
    times = {"startTimeUnixNano": str(nanoseconds(begin)), "timeUnixNano": str(nanoseconds(now))}
    for metric, of_metric in by_metric(samples):
        points = [_point(each, common, times) for each in of_metric]
        data: dict[str, Any] = {
            "resource": {"attributes": []},
            "scopeMetrics": [
                {"scope": {"name": scope}, "metrics": [_metric(metric, points, temporality)]}
            ],
        }
        yield json.dumps(data, separators=(",", ":"), allow_nan=False)


def _metric(metric: MetricFamily, points: Sequence[object], temporality: int) -> dict[str, Any]:
    described = {"name": metric.name, "description": metric.help, "unit": metric.unit}
    match metric.kind:
        case MetricType.GAUGE:
            return {**described, "gauge": {"dataPoints": points}}
        case MetricType.COUNTER:
            data = {"dataPoints": points, "aggregationTemporality": temporality}
            return {**described, "sum": {**data, "isMonotonic": True}}
        case MetricType.HISTOGRAM:
            data = {"dataPoints": points, "aggregationTemporality": temporality}
            return {**described, "histogram": data}


def _point(sample: Sample, common: Mapping[str, str], times: Mapping[str, str]) -> dict[str, Any]:
    labels = sample.named(common).items()
    attributes = [{"key": name, "value": {"stringValue": value}} for name, value in labels]
    found: dict[str, Any] = {**times, "attributes": attributes}
    value = sample.value
    if isinstance(value, Histogram):
        found |= {
            "count": str(value.count),
            "sum": _number(value.total),
            "bucketCounts": [str(count) for count in value.counts],
            "explicitBounds": list(value.bounds),
        }
    elif isinstance(value, int):
        found["asInt"] = str(int(value))
    else:
        found["asDouble"] = _number(value)
    return found


def _number(value: float) -> float | str:
    """Return a number in the form of Protobuf's JSON, which has names for those that are not
    finite.
    """
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def nanoseconds(seconds: float) -> int:
    """Return a time as OTLP writes it."""
    return round(seconds * _SECOND)
