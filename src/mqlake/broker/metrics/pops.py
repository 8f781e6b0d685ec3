"""Pops that are known in memory, and the revive topic. Upstream: `PopMetricsManager`."""

from __future__ import annotations

from mqlake.broker.metrics.existing import of_existing
from mqlake.broker.state.broker_state import BrokerState
from mqlake.metrics.metric import Sample, counter, gauge, histogram
from mqlake.remoting.slices import Job

_MS = "milliseconds"
_WHOSE = ("consumer_group", "topic")

LOOKS = histogram(
    "rocketmq_pop_buffer_scan_time_consume", "Duration of each check of the pops in memory.", _MS
)
CHECK_POINTS = gauge(
    "rocketmq_pop_checkpoint_buffer_size", "Pops in memory with messages that are not settled."
)
OFFSETS = gauge(
    "rocketmq_pop_offset_buffer_size", "Pops that the offset of their group has not passed."
)
PUT = counter(
    "rocketmq_pop_revive_in_message_total",
    "Check points and acknowledgements that were put to the revive topic.",
    labels=(*_WHOSE, "revive_message_type", "put_status"),
)
READ = counter(
    "rocketmq_pop_revive_out_message_total",
    "Check points and acknowledgements that were read there.",
    labels=(*_WHOSE, "revive_message_type", "queue_id"),
)
RETRIED = counter(
    "rocketmq_pop_revive_retry_messages_total",
    "Messages that were put to retry topics, as they were not acknowledged in time.",
    labels=(*_WHOSE, "put_status"),
)
REVIVE_LAG = gauge(
    "rocketmq_pop_revive_lag",
    "Messages of a queue of the revive topic that are not finished.",
    labels=("queue_id",),
)
REVIVE_LATENCY = gauge(
    "rocketmq_pop_revive_latency", "Age of the oldest of them.", _MS, ("queue_id",)
)


def samples(state: BrokerState) -> Job[list[Sample]]:
    """Return the numbers of topics that exist."""
    counts, now = state.pop_counts, state.store.clock.milliseconds()
    check_points, offsets = counts.in_memory()
    found = [
        Sample(LOOKS, counts.look_times.copy()),
        Sample(CHECK_POINTS, check_points),
        Sample(OFFSETS, offsets),
    ]
    yield
    for each in counts.behind():
        queue = (str(each.queue_id),)
        age = max(0, now - each.oldest) if each.oldest else 0
        found += [Sample(REVIVE_LAG, each.messages, queue), Sample(REVIVE_LATENCY, age, queue)]
        yield
    for metric, of_metric in ((PUT, counts.put), (READ, counts.read), (RETRIED, counts.retried)):
        found += of_existing(state, metric, of_metric, place=1)
        yield
    return found
