"""Who is connected, and what is served. Upstream: `BrokerMetricsManager`."""

from __future__ import annotations

from collections import Counter

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.metrics.metric import Sample, counter, gauge
from mqlake.protocol.naming import SYSTEM_GROUP_PREFIX
from mqlake.remoting.metrics import requests
from mqlake.remoting.metrics.requests import REMOTING, MeasuredServer
from mqlake.remoting.slices import Job

_CLIENT = ("language", "version", "protocol_type")
_MODES = {"CONSUME_ACTIVELY": "pull", "CONSUME_PASSIVELY": "push", "CONSUME_POP": "pop"}

PRODUCERS = gauge("rocketmq_producer_connections", "Connected producers.", labels=_CLIENT)
CONSUMERS = gauge(
    "rocketmq_consumer_connections",
    "Connected consumers of a group.",
    labels=("consumer_group", *_CLIENT, "consume_mode", "is_system"),
)

WAITING = gauge("mqlake_long_requests", "Long requests that are not answered yet.")
PAST_END = counter(
    "mqlake_offsets_past_end_total",
    "Pulls and commits that named an offset past the end of their queue.",
    labels=("request",),
)


def samples(
    state: BrokerState, runtime: BrokerRuntime, broker: MeasuredServer
) -> Job[list[Sample]]:
    """Return the connected clients by kind, and counts of requests since the start."""
    found = [
        *requests.samples(broker),
        Sample(WAITING, len(runtime.slices)),
        Sample(PAST_END, state.past_end.corrected, ("pull",)),
        Sample(PAST_END, state.past_end.refused, ("commit",)),
        *(
            Sample(requests.REFUSED, count, (reason,))
            for reason, count in state.busy.counts.items()
        ),
    ]
    yield
    producers = Counter[tuple[str, ...]]()
    for members in list(state.clients.producers.values()):
        producers.update((each.language, str(each.version), REMOTING) for each in members)
        yield
    found += [Sample(PRODUCERS, count, labels) for labels, count in producers.items()]
    for group in list(state.clients.consumers.values()):
        mode, name = _MODES.get(group.consume_type, "unknown"), group.group
        is_system = str(name.startswith(SYSTEM_GROUP_PREFIX)).lower()
        kinds = Counter((each.language, str(each.version)) for each in group)
        found += [
            Sample(CONSUMERS, count, (name, *kind, REMOTING, mode, is_system))
            for kind, count in kinds.items()
        ]
        yield
    return found
