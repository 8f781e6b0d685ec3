"""Decide which topics are converted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from mqlake.errors import JobError
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.formats.kafka.file_name import INTERNAL_TOPICS, is_topic
from mqlake.formats.topic_names import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    CHECKPOINT_TOPIC,
    OFFSET_MOVED_TOPIC,
    SELF_TEST_TOPIC,
)

_ROCKETMQ = re.compile(r"[%|a-zA-Z0-9_-]{1,127}")
_SYSTEM = frozenset(
    {
        AUTO_CREATE_TOPIC,
        SCHEDULE_TOPIC,
        BENCHMARK_TOPIC,
        "TRANS_CHECK_MAX_TIME_TOPIC",
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        CHECKPOINT_TOPIC,
    }
)
_SYSTEM_PREFIXES = ("rmq_sys_", "RMQ_SYS_")


class LeftOut(msgspec.Struct, frozen=True):
    """A topic that is not converted, and why."""

    topic: str
    reason: str


def for_kafka(topic: str) -> str | None:
    """Return why a topic of RocketMQ cannot be converted to Kafka, None if it can."""
    if topic in _SYSTEM or topic.startswith(_SYSTEM_PREFIXES):
        return "RocketMQ's own"
    if topic in INTERNAL_TOPICS:
        return "the name belongs to one of Kafka's own topics"
    return None if is_topic(topic) else "Kafka allows only letters, digits, '.', '_' and '-'"


def for_rocketmq(topic: str) -> str | None:
    """Return why a topic of Kafka cannot be converted to RocketMQ, None if it can."""
    if topic in INTERNAL_TOPICS:
        return "Kafka's own"
    if topic in _SYSTEM or topic.startswith(_SYSTEM_PREFIXES):
        return "the name belongs to one of RocketMQ's own topics"
    if not _ROCKETMQ.fullmatch(topic):
        return "RocketMQ allows at most 127 letters, digits, '_', '-', '%' and '|'"
    return None


def choose(
    there: Iterable[str], asked: Sequence[str], refusal: Callable[[str], str | None]
) -> tuple[list[str], list[LeftOut]]:
    """Return the existing topics to convert, and those that are left out.

    Raises:
        JobError: a requested topic does not exist, or cannot be converted.
    """
    known = set(there)
    for topic in asked:
        if topic not in known:
            raise JobError(f"topic {topic!r} does not exist")
        if reason := refusal(topic):
            raise JobError(f"topic {topic!r} cannot be converted: {reason}")
    left_out = [LeftOut(topic, reason) for topic in sorted(known) if (reason := refusal(topic))]
    if asked:
        return sorted(set(asked)), []
    return sorted(known.difference(one.topic for one in left_out)), left_out
