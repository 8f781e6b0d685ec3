"""How far consumers are behind. Upstream: `ConsumerLagCalculator`."""

from __future__ import annotations

from typing import NamedTuple

from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.clients.members import ConsumerGroup
from mqlake.formats.config.topics import Topic
from mqlake.metrics.metric import Sample, gauge
from mqlake.protocol.naming import SYSTEM_GROUP_PREFIX
from mqlake.remoting.slices import Job

_LABELS = ("consumer_group", "topic", "is_retry", "is_system")
_MS = "milliseconds"

LAG = gauge(
    "rocketmq_consumer_lag_messages",
    "Messages past the group's committed offsets.",
    labels=_LABELS,
)
IN_FLIGHT = gauge(
    "rocketmq_consumer_inflight_messages",
    "Messages that the group has pulled, and whose offsets it has not committed.",
    labels=_LABELS,
)
READY = gauge(
    "rocketmq_consumer_ready_messages", "Messages that the group has not pulled.", labels=_LABELS
)
LAG_LATENCY = gauge(
    "rocketmq_consumer_lag_latency",
    "Age of the oldest message past the group's committed offsets.",
    _MS,
    _LABELS,
)
QUEUEING_LATENCY = gauge(
    "rocketmq_consumer_queueing_latency",
    "Age of the oldest message that the group has not pulled.",
    _MS,
    _LABELS,
)


class _Behind(NamedTuple):
    """How far a group is behind in some queues; times are store times, 0 without a message."""

    lag: int = 0
    in_flight: int = 0
    ready: int = 0
    oldest: int = 0
    oldest_ready: int = 0

    def __or__(self, other: _Behind) -> _Behind:
        return _Behind(
            self.lag + other.lag,
            self.in_flight + other.in_flight,
            self.ready + other.ready,
            _older(self.oldest, other.oldest),
            _older(self.oldest_ready, other.oldest_ready),
        )


def samples(state: BrokerState) -> Job[list[Sample]]:
    """Return one sample of each metric for each topic of each group that has a consumer."""
    found: list[Sample] = []
    now = state.store.clock.milliseconds()
    for group in list(state.clients.consumers.values()):
        for name in list(group.subscriptions):
            topic = state.topics.get(name)
            if topic is None or group.is_broadcasting:
                continue
            behind = yield from _of_topic(state, group, topic)
            is_system = state.topics.is_system(name) or group.group.startswith(SYSTEM_GROUP_PREFIX)
            labels = (group.group, name, "false", "true" if is_system else "false")
            found += [
                Sample(LAG, behind.lag, labels),
                Sample(IN_FLIGHT, behind.in_flight, labels),
                Sample(READY, behind.ready, labels),
                Sample(LAG_LATENCY, _age(now, behind.oldest), labels),
                Sample(QUEUEING_LATENCY, _age(now, behind.oldest_ready), labels),
            ]
        yield
    return found


def _of_topic(state: BrokerState, group: ConsumerGroup, topic: Topic) -> Job[_Behind]:
    behind = _Behind()
    for queue_id in range(topic.write_queue_nums):
        behind |= _of_queue(state, group.group, topic.topic_name, queue_id)
        yield
    return behind


def _of_queue(state: BrokerState, group: str, topic: str, queue_id: int) -> _Behind:
    low, high = state.store.reads.queue(topic, queue_id)
    offsets = state.store.config.consumer_offsets
    committed = offsets.query(group, topic, queue_id)
    at = min(max(low if committed is None else committed, low), high)
    pulled = min(max(offsets.query_pull(group, topic, queue_id) or 0, at), high)
    if at == high:
        return _Behind()
    oldest = _time(state, topic, queue_id, at)
    ready = _time(state, topic, queue_id, pulled) if pulled < high else 0
    return _Behind(high - at, pulled - at, high - pulled, oldest, ready)


def _time(state: BrokerState, topic: str, queue_id: int, offset: int) -> int:
    head = state.store.reads.head_from(topic, queue_id, offset)
    return 0 if head is None else head.store_timestamp


def _older(a: int, b: int) -> int:
    """Return the earlier of two times, of which 0 does not count."""
    return min(a, b) if a and b else a or b


def _age(now: int, time: int) -> int:
    return max(0, now - time) if time else 0
