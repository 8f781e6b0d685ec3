"""Messages in and out, by topic and group. Upstream: `BrokerMetricsManager`."""

from __future__ import annotations

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.stats import (
    DEAD_LETTERS,
    GROUP_GET,
    GROUP_GET_SIZE,
    SEND_BACK,
    TOPIC_PUT_SIZE,
)
from mqlake.formats.config.topics import MESSAGE_TYPE
from mqlake.metrics.counts import samples_of
from mqlake.metrics.metric import MetricFamily, Sample, counter, gauge, histogram
from mqlake.remoting.slices import Job

_IN = ("topic", "message_type", "is_system")
_OUT = ("topic", "consumer_group", "is_system")
_UNTYPED = ("", "unspecified", "mixed")

MESSAGES_IN = counter("rocketmq_messages_in_total", "Messages put to a topic.", labels=_IN)
BYTES_IN = counter("rocketmq_throughput_in_total", "Bytes of these messages.", labels=_IN)
SIZE = histogram(
    "rocketmq_message_size", "Bytes of each message that was put to a topic.", labels=_IN
)
MESSAGES_OUT = counter(
    "rocketmq_messages_out_total", "Messages that a group received.", labels=_OUT
)
BYTES_OUT = counter("rocketmq_throughput_out_total", "Bytes of these messages.", labels=_OUT)
SENT_BACK = counter(
    "mqlake_messages_sent_back_total", "Messages that a group gave back.", labels=_OUT
)
TO_DLQ = counter(
    "rocketmq_send_to_dlq_messages_total",
    "Messages of a topic that were put to the dead-letter topic of a group.",
    labels=("consumer_group", "topic", "is_system"),
)
_CREATION = ("invocation_status", "is_system")
TOPIC_CREATION = histogram(
    "rocketmq_topic_create_execution_time",
    "Duration of requests that create or change topics.",
    "milliseconds",
    _CREATION,
)
GROUP_CREATION = histogram(
    "rocketmq_consumer_group_create_execution_time",
    "Duration of requests that create or change consumer groups.",
    "milliseconds",
    _CREATION,
)
TOPICS = gauge("rocketmq_topic_number", "Number of topics.")
GROUPS = gauge("rocketmq_consumer_group_number", "Number of consumer groups.")
PERMISSION = gauge("rocketmq_broker_permission", "2 to write, 4 to read, 6 for both.")

_OF_GROUPS = ((MESSAGES_OUT, GROUP_GET), (BYTES_OUT, GROUP_GET_SIZE), (SENT_BACK, SEND_BACK))


def samples(state: BrokerState, runtime: BrokerRuntime) -> Job[list[Sample]]:
    """Return the counts since the start, of topics that exist."""
    found = [
        Sample(TOPICS, len(state.topics)),
        Sample(GROUPS, len(state.groups)),
        Sample(PERMISSION, runtime.settings.broker_permission),
    ]
    sizes = state.stats.counted(TOPIC_PUT_SIZE)
    for name, count in (yield from state.stats.puts()).items():
        if (topic := state.topics.get(name)) is not None and count:
            kind = topic.attributes.get(MESSAGE_TYPE, "").lower()
            kind = "normal" if kind in _UNTYPED else kind
            labels = (name, kind, _is(state.topics.is_system(name)))
            found.append(Sample(MESSAGES_IN, count, labels))
            found.append(Sample(BYTES_IN, sizes.get(name, 0), labels))
            if (of_each := state.stats.sizes.get(name)) is not None:
                found.append(Sample(SIZE, of_each.copy(), labels))
        yield
    for metric, name in _OF_GROUPS:
        yield from _of_groups(state, metric, name, found)
    found += samples_of(
        (
            (TOPIC_CREATION, state.creation_times.topics),
            (GROUP_CREATION, state.creation_times.groups),
        )
    )
    for key, count in list(state.stats.counted(DEAD_LETTERS).items()):
        topic, _, group = key.partition("@")
        found.append(Sample(TO_DLQ, count, (group, topic, _is(state.topics.is_system(topic)))))
    return found


def _of_groups(
    state: BrokerState, metric: MetricFamily, name: str, found: list[Sample]
) -> Job[None]:
    for key, count in list(state.stats.counted(name).items()):
        topic, _, group = key.partition("@")
        found.append(Sample(metric, count, (topic, group, _is(state.topics.is_system(topic)))))
        yield


def _is(fact: bool) -> str:
    return "true" if fact else "false"
