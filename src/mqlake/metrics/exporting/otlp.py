"""Samples to a collector that speaks OTLP over gRPC.

Upstream: `BrokerMetricsManager` with `OtlpGrpcMetricExporter`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mqlake.errors import MqlakeError
from mqlake.metrics.exporting.options import OtlpExport
from mqlake.metrics.exporting.otlp_json import nanoseconds
from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import MetricFamily, MetricType, Sample, by_metric

try:
    from grpc import Compression
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import export
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
except ModuleNotFoundError:
    raise MqlakeError("OpenTelemetry is not installed: pip install 'mqlake[otlp]'") from None


class OtlpExporter:
    """A connection to a collector. Its methods wait for the network: call them in a thread.

    Args:
        common: labels of all samples, by name.
        scope: the name of the meter.
    """

    def __init__(self, options: OtlpExport, common: Mapping[str, str], scope: str) -> None:
        self._options, self._common, self._scope = options, common, scope
        self.most: int | None = options.most
        self._exporter: Any = OTLPMetricExporter(
            endpoint=options.target,
            insecure=options.target.startswith("http://"),
            headers=options.headers,
            timeout=options.timeout,
            compression=Compression.Gzip,
        )

    def export(self, samples: Sequence[Sample], begin: float, now: float, timeout: float) -> bool:
        """Send samples in one request; return whether they have arrived.

        Args:
            begin, now: from when until when totals count, in seconds since 1970.
            timeout: seconds within which they must arrive.
        """
        times = nanoseconds(begin), nanoseconds(now)
        metrics = [
            self._metric(metric, [self._point(each, *times) for each in of_metric])
            for metric, of_metric in by_metric(samples)
        ]
        scope = export.ScopeMetrics(InstrumentationScope(self._scope), metrics, "")
        data = export.MetricsData([export.ResourceMetrics(Resource({}), [scope], "")])
        # The library ignores the timeout of a call, and reads this at the beginning of each.
        self._exporter._timeout = timeout
        result = self._exporter.export(data)
        return result is export.MetricExportResult.SUCCESS

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()

    def _metric(self, metric: MetricFamily, points: Sequence[Any]) -> export.Metric:
        is_delta = self._options.is_delta
        temporality = (
            export.AggregationTemporality.DELTA
            if is_delta
            else export.AggregationTemporality.CUMULATIVE
        )
        data: Any
        match metric.kind:
            case MetricType.GAUGE:
                data = export.Gauge(points)
            case MetricType.COUNTER:
                data = export.Sum(points, temporality, is_monotonic=True)
            case MetricType.HISTOGRAM:
                data = export.Histogram(points, temporality)
        return export.Metric(metric.name, metric.help, metric.unit, data)

    def _point(self, sample: Sample, begin: int, now: int) -> Any:
        labels = sample.named(self._common)
        value = sample.value
        if not isinstance(value, Histogram):
            return export.NumberDataPoint(labels, begin, now, value)
        bounds: Any = value.bounds
        nothing: Any = None  # The least and the greatest value are not known.
        return export.HistogramDataPoint(
            attributes=labels,
            start_time_unix_nano=begin,
            time_unix_nano=now,
            count=value.count,
            sum=value.total,
            bucket_counts=value.counts,
            explicit_bounds=bounds,
            min=nothing,
            max=nothing,
        )
