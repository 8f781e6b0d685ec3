"""Publish the metrics of a program as its settings say."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Final, NamedTuple

from mqlake.metrics.endpoint import Endpoint
from mqlake.metrics.exporting.options import (
    LogExport,
    MetricsSettings,
    OtlpExport,
    Publishing,
    ServedPages,
    publishing,
)
from mqlake.metrics.exporting.periodic import LogSink, PeriodicExport, Sink
from mqlake.metrics.observed import Collector, Observed

BROKER_SCOPE: Final = "broker-meter"
"""The name of RocketMQ's meter."""


class Published(NamedTuple):
    """Metrics that are published.

    Attributes:
        port: of the pages; None without pages.
        exporting: exports at intervals; None without.
    """

    port: int | None
    exporting: PeriodicExport | None

    async def finish(self) -> None:
        """Export once more, and no longer; to be called while there still are samples."""
        if self.exporting is not None:
            await self.exporting.stop()


NOWHERE: Final = Published(None, None)
"""Metrics that are not published."""


async def publish(
    how: Publishing,
    observed: Observed,
    undo: AsyncExitStack,
    scope: str = BROKER_SCOPE,
    *,
    measures_lag: bool = True,
) -> Published:
    """Publish metrics until `undo` is closed.

    Args:
        scope: the name of the meter in exports.
        measures_lag: see `Collector`.

    Raises:
        MqlakeError: a package is not installed, or the address cannot be listened on.
    """
    collector = Collector(observed, measures_lag=measures_lag)
    undo.callback(collector.stop)
    if isinstance(how, ServedPages):
        return Published(await _serve(how, collector, undo), None)
    common = {**observed.labels, **({"aggregation": "delta"} if how.is_delta else {})}

    def make_sink() -> Sink:
        if isinstance(how, LogExport):
            return LogSink(common, scope, is_delta=how.is_delta)
        return _otlp(how, common, scope)

    exporting = PeriodicExport(how, collector, make_sink)
    await exporting.start()
    undo.push_async_callback(exporting.stop)
    return Published(None, exporting)


async def publish_as_set(
    settings: MetricsSettings,
    host: str,
    observed: Observed,
    undo: AsyncExitStack,
    scope: str = BROKER_SCOPE,
) -> Published:
    """Publish the metrics of a server as its settings say, until `undo` is closed.

    Args:
        host: where pages are served if no setting says so.
        scope: the name of the meter in exports.

    Raises:
        MqlakeError: settings contradict each other; see `publish` for others.
    """
    how = publishing(settings, host)
    return NOWHERE if how is None else await publish(how, observed, undo, scope)


async def _serve(how: ServedPages, collector: Collector, undo: AsyncExitStack) -> int:
    # Needs an extra, which programs without these pages need not have.
    from mqlake.metrics.pages import ProgramPages

    endpoint = Endpoint(ProgramPages(collector).by_path())
    port = await endpoint.start(how.host, how.port)
    undo.push_async_callback(endpoint.stop)
    return port


def _otlp(how: OtlpExport, common: dict[str, str], scope: str) -> Sink:
    from mqlake.metrics.exporting.otlp import OtlpExporter

    return OtlpExporter(how, common, scope)
