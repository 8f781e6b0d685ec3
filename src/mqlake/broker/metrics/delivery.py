"""Transactions and messages that wait for their time.

Upstream: `BrokerMetricsManager`, `DefaultStoreMetricsManager`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from mqlake.broker.metrics.existing import of_existing
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.topic_names import TIMER_TOPIC
from mqlake.metrics.metric import Sample, counter, gauge, histogram
from mqlake.remoting.slices import Job

_MS = "milliseconds"
_TOPIC = ("topic",)
_STORAGE = ("storage_type", "storage_medium")
_LOCAL = ("local", "disk")
_BOUNDS: Final = (5, 60, 300, 900, 3600, 14_400, 28_800, 86_400)
"""Seconds: RocketMQ's `timerDist`."""
_SECOND: Final = 1000
_AT_ONCE: Final = 500
"""Slots that are counted in one step."""

COMMITTED = counter("rocketmq_commit_messages_total", "Committed transactions.", labels=_TOPIC)
ROLLED_BACK = counter(
    "rocketmq_rollback_messages_total", "Transactions that were rolled back.", labels=_TOPIC
)
DURATION = histogram(
    "rocketmq_finish_message_latency",
    "Time from when a message was made until its transaction was committed.",
    _MS,
    _TOPIC,
)
HALF = gauge(
    "mqlake_half_messages",
    "Half messages that have not ended. One that its producer was asked about may count twice until"
    " the next check.",
)
ENQUEUE_LAG = gauge(
    "rocketmq_timer_enqueue_lag",
    "Messages with a delivery time that were stored, and not yet put into the timer.",
    labels=_STORAGE,
)
ENQUEUE_LATENCY = gauge(
    "rocketmq_timer_enqueue_latency", "Age of the oldest of them.", _MS, _STORAGE
)
DEQUEUE_LAG = gauge(
    "rocketmq_timer_dequeue_lag",
    "Messages whose delivery time is over, and which are not delivered.",
    labels=_STORAGE,
)
DEQUEUE_LATENCY = gauge(
    "rocketmq_timer_dequeue_latency",
    "Time since the delivery time up to which all messages are delivered.",
    _MS,
    _STORAGE,
)
TIMING = gauge(
    "rocketmq_timing_messages",
    "Messages that wait for their delivery time.",
    labels=(*_STORAGE, "topic"),
)
SNAPSHOT = gauge(
    "rocketmq_timer_message_snapshot",
    "Messages that are due within 24 hours, by the seconds until then: at most the bound, and more"
    " than the next smaller bound.",
    labels=(*_STORAGE, "timer_bound_s"),
)
ENTERED = counter(
    "rocketmq_timer_enqueue_total",
    "Messages that began to wait for their delivery time.",
    labels=(*_STORAGE, "topic"),
)
DELIVERED = counter(
    "rocketmq_timer_dequeue_total",
    "Messages that were delivered at their time.",
    labels=(*_STORAGE, "topic"),
)

DELAYS = histogram(
    "rocketmq_delay_message_latency",
    "Time from when a message was made until its delivery time, of messages that began to wait.",
    "seconds",
    (*_STORAGE, "topic"),
)


def samples(state: BrokerState, runtime: BrokerRuntime) -> Job[list[Sample]]:
    """Return the numbers of topics that exist."""
    transactions = state.store.transactions
    half = yield from transactions.count_waiting()
    found = [Sample(HALF, half)]
    for metric, counts in (
        (COMMITTED, transactions.committed),
        (ROLLED_BACK, transactions.rolled_back),
        (DURATION, transactions.durations),
    ):
        found += of_existing(state, metric, counts)
        yield
    if runtime.settings.timer_wheel_enable and not runtime.settings.is_slave:
        found += yield from _of_timer(state, runtime)
    return found


def _of_timer(state: BrokerState, runtime: BrokerRuntime) -> Job[list[Sample]]:
    timers, now = state.store.timers, state.store.clock.milliseconds()
    done = timers.delivered_before
    found = [
        Sample(ENQUEUE_LAG, timers.behind, _LOCAL),
        Sample(ENQUEUE_LATENCY, _age_of_next(state, now), _LOCAL),
        Sample(DEQUEUE_LAG, timers.overdue(), _LOCAL),
        Sample(DEQUEUE_LATENCY, max(0, now - done) if done else 0, _LOCAL),
    ]
    found += [
        Sample(TIMING, count, (*_LOCAL, topic))
        for topic, count in timers.waiting_by_topic.items()
        if topic in state.topics
    ]
    yield
    for metric, counts in (
        (ENTERED, timers.entered),
        (DELIVERED, timers.delivered),
        (DELAYS, timers.delays),
    ):
        found += of_existing(state, metric, counts, before=_LOCAL)
        yield
    waiting = yield from _waiting_by_bound(state, now - now % runtime.settings.timer_precision_ms)
    for bound, count in zip(_BOUNDS, waiting, strict=True):
        found.append(Sample(SNAPSHOT, count, (*_LOCAL, str(bound))))
    return found


def _age_of_next(state: BrokerState, now: int) -> int:
    timers = state.store.timers
    if not timers.behind:
        return 0
    head = state.store.reads.head_from(TIMER_TOPIC, 0, timers.next_offset)
    return max(0, now - head.store_timestamp) if head is not None else 0


def _waiting_by_bound(state: BrokerState, now: int) -> Job[list[int]]:
    """Return how many messages are due until each bound, and after the one before.

    Args:
        now: the beginning of the current slot, milliseconds.
    """
    timers, found = state.store.timers, [0] * len(_BOUNDS)
    for number, slot in enumerate(timers.slots()):
        place = bisect_right(_BOUNDS, (slot - now) // _SECOND)
        if slot >= now and place < len(found):
            found[place] += timers.waiting_in(slot)
        if number % _AT_ONCE == 0:
            yield
    return found
