"""Names of lite topics and of their queues, and the attributes of groups and topics about them.

Upstream: `LiteUtil`, `LiteMetadataUtil`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import MESSAGE_TYPE, Topic
from mqlake.formats.topic_names import LIGHT_PREFIX

LITE: Final = "LITE"
"""Message type of a parent topic."""
EXPIRATION: Final = "lite.topic.expiration"
BIND_TOPIC: Final = "lite.bind.topic"
SUB_MODEL: Final = "lite.sub.model"
SHARED, EXCLUSIVE = "Shared", "Exclusive"
RESET_EXCLUSIVE: Final = "lite.sub.reset.offset.exclusive"
RESET_UNSUBSCRIBE: Final = "lite.sub.reset.offset.unsubscribe"
CLIENT_QUOTA: Final = "lite.sub.client.quota"
MAX_EVENTS: Final = "lite.sub.client.max.event.cnt"
DEFAULT_EVENTS: Final = 400
SEPARATOR: Final = "$"
QUEUE_BEGIN: Final = f"{LIGHT_PREFIX}{SEPARATOR}"
"""Begins the name of each lite topic's queue."""
_MOST_EVENTS: Final = 10_000
_MINUTE: Final = 60_000
LONGEST_LITE_TOPIC: Final = 128
"""Characters of a lite topic's name that a broker accepts; proxies accept 64."""


class LiteGroup(NamedTuple):
    """What the attributes of a group say of lite topics.

    Attributes:
        topic: the parent topic; None if the group does not consume lite topics.
        is_exclusive: whether a lite topic has one subscriber of the group.
        resets_exclusive, resets_unsubscribed: whether the group begins at 0 again when another
            client takes over a lite topic, or when a client unsubscribes from it.
        most_events: how many lite topics with new messages are noted for a client.
    """

    topic: str | None
    is_exclusive: bool
    resets_exclusive: bool
    resets_unsubscribed: bool
    most_events: int

    @classmethod
    def of(cls, group: SubscriptionGroup) -> LiteGroup:
        """Return what a group's attributes say."""
        found = group.attributes
        events = found.get(MAX_EVENTS, "")
        number = int(events) if events.isascii() and events.isdigit() and len(events) < 10 else 0
        return cls(
            topic=found.get(BIND_TOPIC) or None,
            is_exclusive=found.get(SUB_MODEL) == EXCLUSIVE,
            resets_exclusive=found.get(RESET_EXCLUSIVE, "").lower() == "true",
            resets_unsubscribed=found.get(RESET_UNSUBSCRIBE, "").lower() == "true",
            most_events=min(number or DEFAULT_EVENTS, _MOST_EVENTS),
        )


def is_parent(topic: Topic) -> bool:
    """Return whether a topic has lite topics."""
    return topic.attributes.get(MESSAGE_TYPE) == LITE


def expiration(topic: Topic) -> int:
    """Return after how many milliseconds a lite topic without messages expires; 0 for never."""
    text = topic.attributes.get(EXPIRATION, "")
    return int(text) * _MINUTE if text.isascii() and text.isdigit() and len(text) < 10 else 0


def expiration_minutes(topic: Topic) -> int:
    """Return the attribute of that name; -1 for never."""
    return expiration(topic) // _MINUTE or -1


def queue_name(topic: str, lite_topic: str) -> str:
    """Return the name of a lite topic's queue."""
    return f"{QUEUE_BEGIN}{topic}{SEPARATOR}{lite_topic}"


def lite_topic_of(queue: str) -> str:
    """Return the name of the lite topic that a queue belongs to."""
    return queue.rpartition(SEPARATOR)[2]


def parent_of(queue: str) -> str:
    """Return the parent topic of a lite topic's queue."""
    return queue[len(QUEUE_BEGIN) :].rpartition(SEPARATOR)[0]


def is_lite_topic(name: str) -> bool:
    """Return whether a lite topic can have this name."""
    return (
        bool(name)
        and len(name) <= LONGEST_LITE_TOPIC
        and name.isascii()
        and (name.replace("-", "").replace("_", "").isalnum() or not name.strip("-_"))
    )
