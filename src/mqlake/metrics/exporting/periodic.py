"""Exports at intervals, beside the program's other work."""

from __future__ import annotations

import asyncio
import logging
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

    def export(self, samples: Sequence[Sample], begin: float, now: float) -> bool:
        """Take samples; return whether they have arrived."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class LogSink:
    """Logs each metric in one line, at level INFO, as OTLP's JSON."""

    def __init__(self, common: Mapping[str, str], scope: str, *, is_delta: bool) -> None:
        self._common, self._scope, self._is_delta = common, scope, is_delta

    def export(self, samples: Sequence[Sample], begin: float, now: float) -> bool:
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
        self._deltas = Deltas()
        self._begin = clock()
        self._is_lost = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; raises what the sink raises."""
        self._sink = await asyncio.to_thread(self._make_sink)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Export what is left, and end."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await self._export()
        await asyncio.to_thread(self._sink.close)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._options.interval)
            await self._export()

    async def _export(self) -> None:
        now, has_arrived = self._clock(), False
        try:
            samples = await self._collector.collect()
            sent = self._deltas.of(samples) if self._options.is_delta else samples
            has_arrived = await asyncio.to_thread(self._sink.export, sent, self._begin, now)
        except Exception as error:  # noqa: BLE001 (the program goes on without this export)
            _log.error("metrics could not be exported", exc_info=error)
        else:
            self._note(has_arrived=has_arrived)
            if has_arrived and self._options.is_delta:
                self._deltas.arrived(samples)
                self._begin = now

    def _note(self, *, has_arrived: bool) -> None:
        """Log the first export of several that does not arrive, and the first that does again."""
        if has_arrived == self._is_lost:
            self._is_lost = not has_arrived
            if has_arrived:
                _log.info("metrics arrive again")
            else:
                _log.warning("metrics do not arrive at metricsGrpcExporterTarget")
