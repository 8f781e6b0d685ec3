"""Exports to a collector that speaks OTLP over gRPC: the standard library's own service."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent import futures
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as messages
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as service
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from mqlake.metrics.exporting.options import OtlpExport
from mqlake.metrics.exporting.otlp import OtlpExporter
from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import Sample
from mqlake.metrics.publishing import publish
from tests.metrics.exporting.samples import SENT, SIZE, TIME, Program
from tests.until import PATIENCE


class Arrived(service.MetricsServiceServicer):
    """A collector that keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.headers: dict[str, str] = {}
        self.status: grpc.StatusCode | None = None
        self.turn = threading.Lock()

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 (its name is OTLP's)
        with self.turn:
            if self.status is not None:
                context.abort(self.status, "refused")
            self.requests.append(request)
            self.headers = {str(key): str(value) for key, value in context.invocation_metadata()}
        return messages.ExportMetricsServiceResponse()

    def metrics(self) -> Mapping[str, Any]:
        return {
            metric.name: metric
            for request in self.requests
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@contextmanager
def collector() -> Iterator[tuple[Arrived, str]]:
    server, arrived = grpc.server(futures.ThreadPoolExecutor(2)), Arrived()
    service.add_MetricsServiceServicer_to_server(arrived, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield arrived, f"http://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def samples() -> list[Sample]:
    times = Histogram((1.0, 10.0))
    for value in (0.5, 5, 50):
        times.add(value)
    sent = [Sample(SENT, count, (f"T{count}",)) for count in range(5)]
    return [Sample(SIZE, 7.5), Sample(TIME, times, ("T",)), *sent]


@pytest.mark.parametrize("is_delta", [False, True])
def test_a_collector_gets_what_was_measured(is_delta: bool) -> None:
    with collector() as (arrived, target):
        options = OtlpExport(target, (("tenant", "7"),), 100.0, is_delta=is_delta)
        exporter = OtlpExporter(options, {"node_id": "a"}, "broker-meter")
        assert exporter.export(samples(), 1000.5, 1060.0, 100.0)
        exporter.close()
    assert arrived.headers["tenant"] == "7"
    found = arrived.metrics()
    (resource,) = arrived.requests[0].resource_metrics
    assert not resource.resource.attributes
    assert resource.scope_metrics[0].scope.name == "broker-meter"
    assert set(found) == {"demo_size", "demo_time", "demo_sent_total"}
    (size,) = found["demo_size"].gauge.data_points
    assert (size.as_double, found["demo_size"].unit) == (7.5, "bytes")
    assert size.time_unix_nano == 1060 * 10**9
    total = found["demo_sent_total"].sum
    names = {point.as_int: {a.key: a.value.string_value for a in point.attributes}
             for point in total.data_points}  # fmt: skip
    assert names == {count: {"node_id": "a", "topic": f"T{count}"} for count in range(5)}
    wanted = "DELTA" if is_delta else "CUMULATIVE"
    temporality = AggregationTemporality.Value(f"AGGREGATION_TEMPORALITY_{wanted}")
    assert total.aggregation_temporality == temporality
    assert total.is_monotonic
    assert total.data_points[0].start_time_unix_nano == 1000_500_000_000
    histogram = found["demo_time"].histogram
    (times,) = histogram.data_points
    assert histogram.aggregation_temporality == temporality
    assert (list(times.bucket_counts), list(times.explicit_bounds)) == ([1, 1, 1], [1, 10])
    assert (times.count, times.sum) == (3, 55.5)
    assert not times.HasField("min")


def test_large_exports_are_divided() -> None:
    class Many(Program):
        async def samples(self) -> list[Sample]:
            return samples()

    async def run(target: str) -> None:
        async with AsyncExitStack() as undo:
            options = OtlpExport(target, timeout=100.0, most=2)
            published = await publish(options, Many(), undo)
            await published.finish()

    with collector() as (arrived, target):
        asyncio.run(run(target))
    assert len(arrived.requests) == 4
    assert {"demo_size", "demo_time", "demo_sent_total"} < set(arrived.metrics())


def test_a_collector_that_refuses_or_is_gone_is_noticed() -> None:
    with collector() as (arrived, target):
        arrived.status = grpc.StatusCode.PERMISSION_DENIED
        exporter = OtlpExporter(OtlpExport(target, timeout=100.0), {}, "m")
        assert not exporter.export(samples(), 0, 1, 100.0)
        exporter.close()
    exporter = OtlpExporter(OtlpExport(target), {}, "m")
    assert not exporter.export(samples(), 0, 1, 0.2)
    exporter.close()


def test_a_call_has_a_timeout_of_its_own() -> None:
    with collector() as (arrived, target):
        exporter = OtlpExporter(OtlpExport(target, timeout=PATIENCE), {}, "m")
        with arrived.turn:
            begin = time.monotonic()
            assert not exporter.export(samples(), 0, 1, 0.2)
            assert time.monotonic() - begin < PATIENCE / 2
        exporter.close()
