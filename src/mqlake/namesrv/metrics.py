"""What a name server says about itself. RocketMQ's has no metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from mqlake.metrics.metric import Sample, gauge
from mqlake.metrics.observed import labels_of
from mqlake.namesrv.broker_table import MASTER_ID
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.namesrv.state import NameServerState
from mqlake.remoting.metrics import requests

BROKERS = gauge(
    "mqlake_namesrv_brokers",
    "Registered brokers, by whether they are masters.",
    labels=("broker_cluster", "role"),
)
WITHOUT_MASTER = gauge(
    "mqlake_namesrv_names_without_master",
    "Broker names without a registered master; nobody can send to them.",
    labels=("broker_cluster",),
)
OLDEST_HEARTBEAT = gauge(
    "mqlake_namesrv_oldest_heartbeat",
    "Time since the broker that was silent longest was last heard.",
    "seconds",
)
TOPICS = gauge("mqlake_namesrv_topics", "Topics with at least one route.")
KEYS = gauge("mqlake_namesrv_kv_configs", "Values of the KV configuration.")
WAITING = gauge("mqlake_namesrv_long_requests", "Long requests that are not answered yet.")


class NameServing(requests.MeasuredServer, Protocol):
    """A name server that runs."""

    @property
    def state(self) -> NameServerState: ...


class ObservedNameServer:
    """One name server, as it is monitored.

    Args:
        name: which one it is, "host:port".
        server: returns the name server; None while it starts, or stops.
    """

    def __init__(
        self, settings: NamesrvSettings, name: str, server: Callable[[], NameServing | None]
    ) -> None:
        self.labels: Mapping[str, str] = labels_of("namesrv", name, "", settings.metrics_label)
        self._server = server

    def not_ready(self) -> str | None:
        """Return why nobody is given routes now; None if they are."""
        server = self._server()
        if server is None:
            return "the name server starts or stops"
        settings, clock = server.state.settings, server.state.clock
        waited = clock.milliseconds() - server.state.started
        if settings.need_wait_for_service and waited < settings.wait_seconds_for_service * 1000:
            return "it waits for brokers to register (waitSecondsForService)"
        return None

    async def samples(self) -> list[Sample]:
        """Return all samples; none while it starts."""
        server = self._server()
        if server is None:
            return []
        return [*requests.samples(server), *_of_routes(server.state)]


def _of_routes(state: NameServerState) -> list[Sample]:
    brokers, now = state.routes.brokers, state.clock.milliseconds()
    found = [
        Sample(TOPICS, len(state.routes.topics.queues)),
        Sample(KEYS, len(state.kv)),
        Sample(WAITING, len(state.slices)),
    ]
    if brokers.live:
        oldest = min(live.last_heard for live in brokers.live.values())
        found.append(Sample(OLDEST_HEARTBEAT, max(now - oldest, 0) / 1000))
    for cluster, names in brokers.clusters.items():
        ids = [brokers.by_name[name].broker_addrs for name in names if name in brokers.by_name]
        masters = sum(MASTER_ID in each for each in ids)
        found += [
            Sample(BROKERS, masters, (cluster, "master")),
            Sample(BROKERS, sum(map(len, ids)) - masters, (cluster, "slave")),
            Sample(WITHOUT_MASTER, len(ids) - masters, (cluster,)),
        ]
    return found
