"""Exports at intervals, and the log's lines."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest

from mqlake.errors import MqlakeError
from mqlake.metrics.exporting.options import LogExport, OtlpExport, ServedPages, publishing
from mqlake.metrics.exporting.periodic import PeriodicExport
from mqlake.metrics.metric import Sample
from mqlake.metrics.observed import Collector
from mqlake.metrics.publishing import publish
from mqlake.namesrv.settings import make_namesrv_settings
from tests import simulated
from tests.metrics.exporting.samples import SENT, Program
from tests.until import PATIENCE


class Sink:
    """Keeps what is exported."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.exports: list[tuple[dict[str, float], float, float]] = []
        self.arrives = True
        self.is_closed = False

    def export(self, samples: Sequence[Sample], begin: float, now: float, timeout: float) -> bool:
        found = {each.metric.name: each.value for each in samples}
        self.exports.append((found, begin, now))  # type: ignore[arg-type]
        return self.arrives

    def close(self) -> None:
        self.is_closed = True


def test_what_does_not_arrive_is_exported_again() -> None:
    async def check() -> None:
        program, sink, loop = Program(), Sink(), asyncio.get_running_loop()
        collector = Collector(program)
        options = LogExport(10.0, is_delta=True)
        exporting = PeriodicExport(options, collector, lambda: sink, loop.time)
        begin = loop.time()
        await exporting.start()
        await asyncio.sleep(5)
        for count, arrives in ((3, True), (5, False), (1, True), (0, True)):
            program.sent += count
            sink.arrives = arrives
            await asyncio.sleep(10.0)
        program.sent += 2
        await asyncio.sleep(4)
        await exporting.stop()
        await exporting.stop()
        collector.stop()
        assert [found["demo_sent_total"] for found, _, _ in sink.exports] == [3, 5, 6, 0, 2]
        assert [found["demo_size"] for found, _, _ in sink.exports] == [7.5] * 5
        begins = [round((since - begin) / 10) for _, since, _ in sink.exports]
        assert begins == [0, 1, 1, 3, 4]
        assert sink.is_closed

    simulated.run(check())


class LossySink(Sink):
    """A collector that adds up what arrives, and takes some requests only."""

    def __init__(self, seed: int) -> None:
        super().__init__(most=2)
        self.dice = random.Random(seed)
        self.is_whole = False
        self.sums = dict[tuple[str, ...], float]()

    def export(self, samples: Sequence[Sample], begin: float, now: float, timeout: float) -> bool:
        if not self.is_whole and self.dice.random() < 0.3:
            return False
        for each in samples:
            if each.metric is SENT:
                assert isinstance(each.value, int)
                self.sums[each.labels] = self.sums.get(each.labels, 0) + each.value
        return True


class ManyTopics(Program):
    """A program with a total for each of several topics."""

    def __init__(self) -> None:
        super().__init__()
        self.totals = {(f"T{number}",): 0 for number in range(7)}

    async def samples(self) -> list[Sample]:
        return [Sample(SENT, count, labels) for labels, count in self.totals.items()]


@pytest.mark.parametrize("seed", range(10))
def test_parts_that_arrived_are_not_sent_again(seed: int) -> None:
    async def check() -> None:
        program, sink = ManyTopics(), LossySink(seed)
        collector = Collector(program)
        options = OtlpExport("http://h:1", timeout=5.0, interval=10.0, is_delta=True, most=2)
        exporting = PeriodicExport(options, collector, lambda: sink)
        await exporting.start()
        for _ in range(20):
            for labels in program.totals:
                program.totals[labels] += sink.dice.randrange(5)
            await asyncio.sleep(10.0)
        sink.is_whole = True
        await exporting.stop()
        collector.stop()
        assert sink.sums == program.totals

    simulated.run(check())


class SlowSink(Sink):
    """A collector that takes each request after a while, or does not answer in time."""

    def __init__(self) -> None:
        super().__init__(most=1)
        self.running, self.most_running = 0, 0
        self.may_end = threading.Event()
        self.begun = threading.Event()
        self.timeouts: list[float] = []

    def export(self, samples: Sequence[Sample], begin: float, now: float, timeout: float) -> bool:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self.timeouts.append(timeout)
        self.begun.set()
        self.may_end.wait(PATIENCE)
        self.running -= 1
        return super().export(samples, begin, now, timeout)


def test_the_last_export_waits_for_the_one_that_runs() -> None:
    async def check() -> None:
        program, sink = Program(), SlowSink()
        program.sent = 3
        collector = Collector(program)
        exporting = PeriodicExport(LogExport(0.001, is_delta=True), collector, lambda: sink)
        await exporting.start()
        assert await asyncio.to_thread(sink.begun.wait, PATIENCE)
        stopping = asyncio.create_task(exporting.stop())
        await asyncio.sleep(0.01)
        sink.may_end.set()
        await stopping
        collector.stop()
        assert sink.most_running == 1
        assert sink.is_closed
        assert sum(found.get("demo_sent_total", 0) for found, _, _ in sink.exports) == 3

    asyncio.run(check())


def test_parts_share_one_timeout_and_the_first_failure_is_the_last_part() -> None:
    async def check() -> None:
        program, sink = ManyTopics(), SlowSink()
        sink.may_end.set()
        collector = Collector(program)
        options = OtlpExport("http://h:1", timeout=0.000001, interval=1000.0)
        exporting = PeriodicExport(options, collector, lambda: sink)
        await exporting.start()
        await exporting.stop()
        assert len(sink.exports) <= 1  # The time is over after the first part.
        patient = OtlpExport("http://h:1", timeout=PATIENCE, interval=1000.0)
        for arrives, parts in ((True, 8), (False, 1)):
            sink = SlowSink()
            sink.may_end.set()
            sink.arrives = arrives
            exporting = PeriodicExport(patient, collector, lambda sink=sink: sink)
            await exporting.start()
            await exporting.stop()
            assert len(sink.timeouts) == parts
            assert sink.timeouts == sorted(sink.timeouts, reverse=True)
        collector.stop()

    asyncio.run(check())


def test_an_export_that_fails_does_not_end_the_next_ones(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        program, sink = Program(), Sink()
        collector = Collector(program)
        exporting = PeriodicExport(LogExport(1.0), collector, lambda: sink)
        await exporting.start()
        program.is_broken = True
        await asyncio.sleep(2.5)
        program.is_broken = False
        await asyncio.sleep(1)
        assert len(sink.exports) == 1
        sink.arrives = False
        await asyncio.sleep(3)
        sink.arrives = True
        await asyncio.sleep(2)
        await exporting.stop()
        collector.stop()

    with caplog.at_level(logging.INFO, "mqlake.metrics"):
        simulated.run(check())
    texts = [record.getMessage() for record in caplog.records]
    assert texts.count("metrics do not arrive at metricsGrpcExporterTarget") == 1
    assert texts.count("metrics arrive again") == 1


def test_the_log_has_a_line_for_each_metric(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        program = Program()
        program.sent = 4
        program.times.add(5)
        async with AsyncExitStack() as undo:
            published = await publish(LogExport(60.0, is_delta=True), program, undo, "demo-meter")
            await published.finish()

    with caplog.at_level(logging.INFO, "mqlake.metrics"):
        simulated.run(check())
    found: dict[str, Any] = {}
    for record in caplog.records:
        line = json.loads(record.getMessage())
        (scope,) = line["scopeMetrics"]
        assert scope["scope"] == {"name": "demo-meter"}
        (metric,) = scope["metrics"]
        found[metric["name"]] = metric
    assert set(found) == {"mqlake_event_loop_lag", "demo_size", "demo_sent_total", "demo_time"}
    labels = [
        {"key": name, "value": {"stringValue": value}}
        for name, value in {"node_id": "a", "aggregation": "delta", "topic": "T"}.items()
    ]
    (sent,) = found["demo_sent_total"]["sum"]["dataPoints"]
    assert (sent["asInt"], sent["attributes"]) == ("4", labels)
    assert found["demo_sent_total"]["sum"]["aggregationTemporality"] == 1
    assert found["demo_sent_total"]["sum"]["isMonotonic"]
    (time,) = found["demo_time"]["histogram"]["dataPoints"]
    assert (time["bucketCounts"], time["explicitBounds"]) == (["0", "1", "0"], [1.0, 10.0])
    assert (time["count"], time["sum"]) == ("1", 5)
    (size,) = found["demo_size"]["gauge"]["dataPoints"]
    assert (size["asDouble"], found["demo_size"]["unit"]) == (7.5, "bytes")


def test_settings_say_how_metrics_are_published() -> None:
    def of(**values: object) -> object:
        return publishing(make_namesrv_settings(values), "h")

    assert of() is None
    assert of(metricsExporterType="PROM") == ServedPages("h", 5558)
    assert of(metricsExporterType="PROM", metricsPromExporterHost="127.0.0.2") == ServedPages(
        "127.0.0.2", 5558
    )
    assert of(metricsExporterType="LOG", metricsInDelta="true") == LogExport(10.0, is_delta=True)
    assert of(
        metricsExporterType="OTLP_GRPC",
        metricsGrpcExporterTarget="h:4317",
        metricsGrpcExporterHeader="Authorization: Bearer x=,tenant:7",
        metricGrpcExporterIntervalInMills=500,
        metricGrpcExporterTimeOutInMills=250,
        metricsExportBatchMaxDataPoints=9,
    ) == OtlpExport(
        "https://h:4317", (("authorization", "Bearer x="), ("tenant", "7")), 0.25, 0.5, most=9
    )
    target = {"metricsExporterType": "OTLP_GRPC", "metricsGrpcExporterTarget": "http://h:1"}
    assert of(**target) == OtlpExport("http://h:1")
    with pytest.raises(MqlakeError, match="metricsGrpcExporterTarget"):
        of(metricsExporterType="OTLP_GRPC")
    for wrong in ("h", "ftp://h:1", "h:1/path", "h:99999"):
        with pytest.raises(MqlakeError, match="metricsGrpcExporterTarget"):
            of(metricsGrpcExporterTarget=wrong)


def test_headers_are_never_shown() -> None:
    with pytest.raises(MqlakeError, match="metricsGrpcExporterHeader") as caught:
        make_namesrv_settings({"metricsGrpcExporterHeader": "hunter2"})
    assert "hunter2" not in str(caught.value)
    settings = make_namesrv_settings({"metricsGrpcExporterHeader": "authorization:hunter2"})
    assert "hunter2" not in repr(settings)
