"""Topics of messages that were popped but not acknowledged (upstream: `KeyBuilder`).

A group has one for each topic: `%RETRY%group_topic`, or with `enableRetryTopicV2`
`%RETRY%group+topic`.
"""

from __future__ import annotations

from mqlake.protocol.naming import RETRY_PREFIX, longest_retry_topic

NORMAL, RETRY, RETRY_V2 = "0", "1", "2"
"""Marks of topics in receipts."""

QUEUES = 1
_V1, _V2 = "_", "+"


def retry_topic(topic: str, group: str, *, is_v2: bool) -> str:
    """Return the topic for what a group did not acknowledge of a topic."""
    return f"{RETRY_PREFIX}{group}{_V2 if is_v2 else _V1}{topic}"


def retry_topic_fault(name: str, *, is_v2_written: bool) -> str | None:
    """Return why a retry topic cannot have a name, or None if it can.

    Args:
        name: of the retry topic.
        is_v2_written: see `naming.longest_retry_topic`.
    """
    most = longest_retry_topic(is_v2_written=is_v2_written)
    size = len(name.encode("utf-8", "replace"))
    if size <= most:
        return None
    return (
        f"the retry topic {name} of popped messages would have {size} bytes; the maximum is "
        f"{most}: use a shorter group or topic"
    )


def retry_topics(topic: str, group: str) -> tuple[str, str]:
    """Return the topics to read: both names, since `enableRetryTopicV2` may have been changed, and
    that of the other setting may not be empty yet.
    """
    return retry_topic(topic, group, is_v2=True), retry_topic(topic, group, is_v2=False)


def normal_topic(topic: str, group: str) -> str:
    """Return the topic that a group's retry topic belongs to; other topics are returned as is."""
    for separator in (_V2, _V1):
        prefix = f"{RETRY_PREFIX}{group}{separator}"
        if topic.startswith(prefix):
            return topic[len(prefix) :]
    return topic


def mark_of(topic: str) -> str:
    """Return the mark of a topic."""
    if not topic.startswith(RETRY_PREFIX):
        return NORMAL
    return RETRY_V2 if _V2 in topic else RETRY


def marked(mark: str, topic: str, group: str) -> str:
    """Return the topic that a mark stands for."""
    if mark == NORMAL:
        return topic
    return retry_topic(topic, group, is_v2=mark == RETRY_V2)
