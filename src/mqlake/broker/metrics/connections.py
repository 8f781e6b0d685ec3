"""Who is connected, and what is served. Upstream: `BrokerMetricsManager`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Protocol

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.metrics.metric import Sample, counter, gauge, histogram
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.naming import SYSTEM_GROUP_PREFIX
from mqlake.remoting.connection import Peer
from mqlake.remoting.latencies import Latencies, name_of
from mqlake.remoting.slices import Job

_CLIENT = ("language", "version", "protocol_type")
_REMOTING = "remoting"
_MODES = {"CONSUME_ACTIVELY": "pull", "CONSUME_PASSIVELY": "push", "CONSUME_POP": "pop"}

PRODUCERS = gauge("rocketmq_producer_connections", "Connected producers.", labels=_CLIENT)
CONSUMERS = gauge(
    "rocketmq_consumer_connections",
    "Connected consumers of a group.",
    labels=("consumer_group", *_CLIENT, "consume_mode", "is_system"),
)

LATENCY = histogram(
    "rocketmq_rpc_latency",
    "Time from the start of a request until its answer.",
    "milliseconds",
    ("protocol_type", "request_code", "response_code", "is_long_polling", "result"),
)
REQUESTS = counter(
    "mqlake_requests_total",
    "Requests that were served, without those that a check refused.",
    labels=("request_code",),
)
REFUSED = counter(
    "mqlake_refused_requests_total",
    "Valid requests that were turned away.",
    labels=("reason",),
)
SLOW = counter(
    "mqlake_slow_requests_total",
    "Requests that took at least `slowRequestMillis`.",
)
CONNECTIONS = gauge("mqlake_connections", "Open connections.")
WAITING = gauge("mqlake_long_requests", "Long requests that are not answered yet.")
PAST_END = counter(
    "mqlake_offsets_past_end_total",
    "Pulls and commits that named an offset past the end of their queue.",
    labels=("request",),
)


_TOO_MANY = "TOO_MANY_IN_FLIGHT"


class Served(Protocol):
    """What a broker says about its connections and requests (`Broker`)."""

    @property
    def peers(self) -> Collection[Peer]: ...

    @property
    def served(self) -> Mapping[int, int]: ...

    @property
    def refused(self) -> int: ...

    @property
    def latencies(self) -> Latencies | None: ...


def samples(state: BrokerState, runtime: BrokerRuntime, broker: Served) -> Job[list[Sample]]:
    """Return the connected clients by kind, and counts of requests since the start."""
    found = [
        Sample(CONNECTIONS, len(broker.peers)),
        Sample(WAITING, len(runtime.slices)),
        Sample(PAST_END, state.past_end.corrected, ("pull",)),
        Sample(PAST_END, state.past_end.refused, ("commit",)),
        *(
            Sample(REQUESTS, count, (name_of(RequestCode, code),))
            for code, count in broker.served.items()
            if count
        ),
        *(Sample(REFUSED, count, (reason,)) for reason, count in state.busy.counts.items()),
    ]
    if broker.refused:
        found.append(Sample(REFUSED, broker.refused, (_TOO_MANY,)))
    if broker.latencies is not None:
        found += _of_requests(broker.latencies)
    yield
    producers = Counter[tuple[str, ...]]()
    for members in list(state.clients.producers.values()):
        producers.update((each.language, str(each.version), _REMOTING) for each in members)
        yield
    found += [Sample(PRODUCERS, count, labels) for labels, count in producers.items()]
    for group in list(state.clients.consumers.values()):
        mode, name = _MODES.get(group.consume_type, "unknown"), group.group
        is_system = str(name.startswith(SYSTEM_GROUP_PREFIX)).lower()
        kinds = Counter((each.language, str(each.version)) for each in group)
        found += [
            Sample(CONSUMERS, count, (name, *kind, _REMOTING, mode, is_system))
            for kind, count in kinds.items()
        ]
        yield
    return found


def _of_requests(latencies: Latencies) -> list[Sample]:
    found = [Sample(SLOW, latencies.slow_requests)]
    for kind, times in latencies.all().items():
        labels = (
            _REMOTING,
            name_of(RequestCode, kind.request_code),
            name_of(ResponseCode, kind.response_code),
            str(kind.was_suspended).lower(),
            kind.result,
        )
        found.append(Sample(LATENCY, times, labels))
    return found
