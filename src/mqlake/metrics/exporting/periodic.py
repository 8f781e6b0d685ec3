"""Exports at intervals, beside the program's other work."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from mqlake.metrics.exporting.deltas import Deltas
from mqlake.metrics.exporting.options import LogExport, OtlpExport
from mqlake.metrics.exporting.otlp_json import lines
from mqlake.metrics.metric import Sample
from mqlake.metrics.observed import Collector

_log: Final = logging.getLogger("mqlake.metrics")


class Sink(Protocol):
    """Where samples go. It is called in a thread."""

    most: int | None
    """Maximum samples of one call; None for any number."""

    def export(self, samples: Sequence[Sample], begin: float, now: float, timeout: float) -> bool:
        """Take samples; return whether they have arrived, after so many seconds at most."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class LogSink:
    """Logs each metric in one line, at level INFO, as OTLP's JSON."""

    def __init__(self, common: Mapping[str, str], scope: str, *, is_delta: bool) -> None:
        self._common, self._scope, self._is_delta = common, scope, is_delta

    most: int | None = None

    def export(
        self,
        samples: Sequence[Sample],
        begin: float,
        now: float,
        timeout: float,  # noqa: ARG002 (logging does not wait)
    ) -> bool:
        """Log samples."""
        for line in lines(
            samples, self._common, self._scope, begin=begin, now=now, is_delta=self._is_delta
        ):
            _log.info("%s", line)
        return True

    def close(self) -> None:
        """Do nothing."""


class PeriodicExport:
    """Exports the samples of one program until it is stopped, and once more then.

    What does not arrive is in the next export.

    Args:
        options: the interval, and whether totals are sent as differences.
        make_sink: called in a thread.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        options: OtlpExport | LogExport,
        collector: Collector,
        make_sink: Callable[[], Sink],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._options, self._collector, self._clock = options, collector, clock
        self._make_sink = make_sink
        self._begin = clock()
        self._deltas = Deltas(self._begin)
        self._is_lost = False
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; raises what the sink raises."""
        self._sink = await asyncio.to_thread(self._make_sink)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Export what is left after an export that runs, and end."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping.set()
        try:
            await task
            await self._export()
        finally:
            await asyncio.to_thread(self._sink.close)

    async def _run(self) -> None:
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._options.interval)
                return
            await self._export()

    async def _export(self) -> None:
        now, has_arrived = self._clock(), False
        try:
            has_arrived = await self._send(await self._collector.collect(), now)
        except Exception as error:  # noqa: BLE001 (the program goes on without this export)
            _log.error("metrics could not be exported", exc_info=error)
        else:
            self._note(has_arrived=has_arrived)

    async def _send(self, samples: Sequence[Sample], now: float) -> bool:
        """Send samples in parts, up to the first part that does not arrive in time."""
        options, loop = self._options, asyncio.get_running_loop()
        end = loop.time() + (options.timeout if isinstance(options, OtlpExport) else math.inf)
        for begin, part in self._parts(samples):
            left = end - loop.time()
            sent = self._deltas.of(part) if options.is_delta else part
            if left <= 0 or not await asyncio.to_thread(self._sink.export, sent, begin, now, left):
                return False
            if options.is_delta:
                self._deltas.arrived(part, now)
        if options.is_delta:
            self._deltas.complete(samples, now)
        return True

    def _parts(self, samples: Sequence[Sample]) -> list[tuple[float, Sequence[Sample]]]:
        """Divide samples into parts that the sink takes, each with the time since which it counts.

        That is not the same for all if a part of the last export has not arrived.
        """
        by_begin: dict[float, list[Sample]] = {}
        for each in sorted(samples, key=lambda each: each.metric.name):
            begin = self._deltas.begin_of(each) if self._options.is_delta else self._begin
            by_begin.setdefault(begin, []).append(each)
        most = self._sink.most or len(samples)
        return [
            (begin, found[at : at + most])
            for begin, found in by_begin.items()
            for at in range(0, len(found), most)
        ]

    def _note(self, *, has_arrived: bool) -> None:
        """Log the first export of several that does not arrive, and the first that does again."""
        if has_arrived == self._is_lost:
            self._is_lost = not has_arrived
            if has_arrived:
                _log.info("metrics arrive again")
            else:
                _log.warning("metrics do not arrive at metricsGrpcExporterTarget")
