"""Names of topics and groups: which are allowed, which are the system's, which go with a group.

Upstream: `TopicValidator`, `MixAll`, `KeyBuilder`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.formats.topic_names import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    CHECKPOINT_TOPIC,
    DISCARDED_TOPIC,
    DLQ_PREFIX,
    HALF_TOPIC,
    OF_GROUPS,
    OFFSET_MOVED_TOPIC,
    OP_TOPIC,
    RETRY_PREFIX,
    SELF_TEST_TOPIC,
    TIMER_TOPIC,
    TRACE_TOPIC,
    UNDELIVERABLE_TOPIC,
)

DLQ_QUEUES = 1
SYSTEM_PREFIX = "rmq_sys_"
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"

REVIVE_PREFIX = "rmq_sys_REVIVE_LOG_"
MEMBER_GROUP_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"
REPLY_SUFFIX = "_REPLY_TOPIC"

_NOT_FOR_PRODUCERS = frozenset(
    (SCHEDULE_TOPIC, HALF_TOPIC, OP_TOPIC, DISCARDED_TOPIC, SELF_TEST_TOPIC, OFFSET_MOVED_TOPIC)
)
"""Upstream: `NOT_ALLOWED_SEND_TOPIC_SET`."""
_OWN = (TIMER_TOPIC, UNDELIVERABLE_TOPIC, REVIVE_PREFIX, MEMBER_GROUP_PREFIX)
"""How further topics begin whose contents a broker trusts; upstream lets clients send to them.

Others with SYSTEM_PREFIX are for clients: some send their traces to `rmq_sys_TRACE_DATA_region`.
"""
SYSTEM_TOPICS = _NOT_FOR_PRODUCERS | {
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    TRACE_TOPIC,
    CHECKPOINT_TOPIC,
}

SYSTEM_TOPIC_PATTERN = "|".join(
    (
        f"(?i:{SYSTEM_PREFIX}).*",
        f".*{REPLY_SUFFIX}",
        *(re.escape(name) for name in sorted(SYSTEM_TOPICS)),
    )
)
"""A regular expression; the names of topics that RocketMQ creates for itself match it as a whole.

Clusters and brokers have topics of their own names, too: see `own_topics`.
"""
_SYSTEM_TOPIC = re.compile(SYSTEM_TOPIC_PATTERN, re.DOTALL)

SYSTEM_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
)
"""Consumer groups that every broker has."""

_ALLOWED = re.compile("[%|a-zA-Z0-9_-]+")
_ALLOWED_TEXT = "^[%|a-zA-Z0-9_-]+$"
_LONGEST_TOPIC = 127
_LONGEST_GROUP_TOPIC = 255
_LONGEST_GROUP = 120


def retry_topic(group: str) -> str:
    """Return the topic of what a group gave back."""
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    """Return the topic of what a group has given up."""
    return DLQ_PREFIX + group


def is_for_clients(topic: str) -> bool:
    """Return whether clients may send to a topic: not to those whose contents the broker trusts."""
    return topic not in _NOT_FOR_PRODUCERS and not topic.startswith(_OWN)


def is_system_topic(topic: str) -> bool:
    """Return whether a topic, by its name, is one that RocketMQ creates for itself.

    Retry and dead-letter topics are not: they belong to groups.
    """
    return _SYSTEM_TOPIC.fullmatch(topic) is not None


def own_topics(topics: Iterable[str]) -> set[str]:
    """Return the names of the clusters and brokers whose topics are among these.

    Each cluster and each broker creates a topic of its own name, and others that contain it.
    """
    own: set[str] = set()
    for topic in topics:
        if topic.endswith(REPLY_SUFFIX):
            own.add(topic.removesuffix(REPLY_SUFFIX))
        elif topic.startswith(MEMBER_GROUP_PREFIX):
            own.add(topic.removeprefix(MEMBER_GROUP_PREFIX))
    return own


def longest_retry_topic(*, is_v2_written: bool) -> int:
    """Return the bytes that the retry topic of a group may have.

    Args:
        is_v2_written: whether topics of more than 127 bytes can be written
            (`autoMessageVersionOnTopicLen`).
    """
    return _LONGEST_GROUP_TOPIC if is_v2_written else _LONGEST_TOPIC


def topic_fault(topic: str) -> str | None:
    """Return what is wrong with the name of a topic, None for nothing."""
    is_of_group = topic.startswith(OF_GROUPS)
    if is_of_group:
        return _fault("topic", topic, _LONGEST_GROUP_TOPIC)
    return _fault("topic", topic, _LONGEST_TOPIC)


def group_fault(group: str) -> str | None:
    """Return what is wrong with the name of a group, None for nothing."""
    return _fault("group", group, _LONGEST_GROUP)


def _fault(kind: str, name: str, longest: int) -> str | None:
    if not name.strip():
        return f"The specified {kind} is blank."
    if not _ALLOWED.fullmatch(name):
        return (
            f"The specified {kind}: {name}, contains illegal characters, allowing only"
            f" {_ALLOWED_TEXT}"
        )
    if len(name) > longest:
        return f"The specified {kind}: {name}, is longer than {kind} max length: {longest}"
    return None
