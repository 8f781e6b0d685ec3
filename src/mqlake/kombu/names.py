"""The topics of kombu's queues and exchanges.

A topic has the name of its queue. Bytes other than `A-Z a-z 0-9 _ -` are percent-encoded (`%2E` is
a dot), so that each topic belongs to one queue. An exchange's topic begins with `%EXCHANGE%`, a
queue's never does.
"""

from __future__ import annotations

import re

from mqlake.kombu.errors import ConfigurationError
from mqlake.protocol.naming import SYSTEM_PREFIX, SYSTEM_TOPICS, topic_fault

EXCHANGE_PREFIX = "%EXCHANGE%"
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_PREFIX = re.compile("[A-Za-z0-9_-]*")


def queue_topic(queue: str, prefix: str = "") -> str:
    """Return the topic of a queue.

    Raises:
        ConfigurationError: RocketMQ does not allow a topic of that name.
    """
    return _checked("queue", queue, prefix + _encode("queue", queue))


def exchange_topic(exchange: str, prefix: str = "") -> str:
    """Return the topic of an exchange, which queues that are not durable read.

    Raises:
        ConfigurationError: RocketMQ does not allow a topic of that name.
    """
    return _checked("exchange", exchange, EXCHANGE_PREFIX + prefix + _encode("exchange", exchange))


def prefix_fault(prefix: str) -> str | None:
    """Return why topics cannot begin with a text, None if they can."""
    if _PREFIX.fullmatch(prefix):
        return None
    return f"topic_prefix {prefix!r} may contain only A-Z a-z 0-9 _ -"


def _encode(kind: str, name: str) -> str:
    try:
        data = name.encode()
    except UnicodeEncodeError:
        raise ConfigurationError(f"{kind} {name!r}: the name is not valid Unicode") from None
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in data)


def _checked(kind: str, name: str, topic: str) -> str:
    if not name:
        raise ConfigurationError(f"a {kind} needs a name that is not empty")
    if fault := topic_fault(topic):
        raise ConfigurationError(f"{kind} {name!r}: {fault}")
    if topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_PREFIX):
        raise ConfigurationError(
            f"{kind} {name!r}: topic {topic} is RocketMQ's own; choose another name or a"
            " topic_prefix"
        )
    return topic
