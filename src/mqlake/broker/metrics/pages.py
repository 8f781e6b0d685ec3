"""The pages of a broker's monitoring endpoint: `/metrics`, `/livez` and `/readyz`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus

from mqlake.broker.broker import Broker
from mqlake.broker.metrics import connections, delivery, lag, pops, replication, storage, traffic
from mqlake.broker.settings import BrokerSettings
from mqlake.metrics.endpoint import HttpResponse, Make
from mqlake.metrics.exposition import CONTENT_TYPE, encode
from mqlake.metrics.loop_lag import LoopLag
from mqlake.metrics.metric import Sample, gauge
from mqlake.remoting.slices import Job

LOOP_LAG = gauge(
    "mqlake_event_loop_lag",
    "Longest delay of a due callback since the last scrape.",
    "seconds",
)
RECOVERED = gauge(
    "mqlake_recovery_done", "Bytes that the recovery of the store has read and dispatched.", "bytes"
)
TO_RECOVER = gauge(
    "mqlake_recovery", "Bytes that the recovery of the store reads and dispatches.", "bytes"
)


class Pages:
    """The pages of one broker.

    Args:
        broker: returns the broker; None while it starts, or stops.
    """

    def __init__(self, settings: BrokerSettings, broker: Callable[[], Broker | None]) -> None:
        self._settings, self._broker = settings, broker
        self._lag = LoopLag(asyncio.get_running_loop())
        self._scraping = asyncio.Lock()
        self._recovery: tuple[int, int] | None = None

    def by_path(self) -> Mapping[str, Make]:
        """Return what makes each page."""
        return {"/metrics": self._metrics, "/livez": self._live, "/readyz": self._ready}

    def recovering(self, done: int, total: int) -> None:
        """Note how far the recovery is; may be called in any thread.

        Args:
            done, total: of the bytes that it reads and dispatches; both count.
        """
        self._recovery = done, total

    def stop(self) -> None:
        """Measure no longer."""
        self._lag.stop()

    async def _live(self) -> HttpResponse:
        return HttpResponse(b"ok\n")

    async def _ready(self) -> HttpResponse:
        """Say whether clients may be sent here; if not, why."""
        broker = self._broker()
        if broker is None:
            return _not_ready(f"the broker starts or stops{_progress(self._recovery)}")
        if broker.failed.done():
            return _not_ready(f"the store has failed: {broker.failed.result()}")
        settings, health = broker.settings, broker.state.store.health
        if not settings.is_slave and health.not_writable is not None:
            return _not_ready(f"no messages are accepted: {health.not_writable}")
        return HttpResponse(b"ok\n")

    async def _metrics(self) -> HttpResponse:
        """Encode all samples, for one client after another."""
        async with self._scraping:
            found = [Sample(LOOP_LAG, self._lag.take())]
            if (recovery := self._recovery) is not None:
                found += [Sample(RECOVERED, recovery[0]), Sample(TO_RECOVER, recovery[1])]
            if (broker := self._broker()) is not None:
                found += await broker.runtime.slices.finish(_all(broker))
            labels = common_labels(self._settings)
            body = await asyncio.to_thread(encode, found, labels)
        return HttpResponse(body, content_type=CONTENT_TYPE)


def _all(broker: Broker) -> Job[list[Sample]]:
    state, runtime = broker.state, broker.runtime
    state.store.dispatching.catch_up()  # Lag includes what is acknowledged.
    found: list[Sample] = []
    found += yield from storage.samples(state, runtime)
    found += yield from traffic.samples(state, runtime)
    found += yield from connections.samples(state, runtime, broker)
    found += yield from lag.samples(state)
    found += yield from delivery.samples(state, runtime)
    found += yield from pops.samples(state)
    found += replication.samples(state)
    return found


def common_labels(settings: BrokerSettings) -> dict[str, str]:
    """Return the labels of all samples: which broker it is, and those of `metricsLabel`."""
    own = {
        "cluster": settings.broker_cluster_name,
        "node_type": "broker",
        "node_id": settings.broker_name,
    }
    pairs = (pair.partition(":") for pair in settings.metrics_label.split(",") if pair)
    return {**{name.strip(): value.strip() for name, _, value in pairs}, **own}


def _progress(recovery: tuple[int, int] | None) -> str:
    if recovery is None:
        return "; a start may recover the store"
    done, total = recovery
    percent = 100 * done // total if total else 100
    return f"; the recovery of the store has done {done} of {total} bytes, {percent} %"


def _not_ready(reason: str) -> HttpResponse:
    return HttpResponse(f"{reason}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE)
