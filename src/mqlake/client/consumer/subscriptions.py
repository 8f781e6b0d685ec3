"""The messages of a topic that a consumer selects (upstream: `FilterAPI`, `MessageSelector`)."""

from __future__ import annotations

from typing import TypeVar

from mqlake.client.message import ReceivedMessage
from mqlake.formats.java_string import hash_code
from mqlake.protocol.bodies.heartbeat import Subscription

ALL = "*"
_OR = "||"

M = TypeVar("M", bound=ReceivedMessage)


class Sql(str):
    """A condition in RocketMQ's SQL92, over the properties of messages."""

    __slots__ = ()


class SelectedTopic:
    """A topic, and which of its messages are selected.

    Attributes:
        topic: its name.
        version: milliseconds since 1970; the newest version that was reported to brokers.

    Args:
        selection: an expression of tags such as "TagA || TagB", ALL for all, or `Sql`.
    """

    def __init__(self, topic: str, selection: str, version: int) -> None:
        self.topic, self.version = topic, version
        self.is_sql = isinstance(selection, Sql)
        self.expression = str(selection).strip() or ALL
        is_tags = not self.is_sql and self.expression != ALL
        tags = [tag.strip() for tag in self.expression.split(_OR)] if is_tags else []
        self.tags = frozenset(tag for tag in tags if tag)

    @property
    def expression_type(self) -> str:
        """Return the name that brokers have for the kind of expression."""
        return "SQL92" if self.is_sql else "TAG"

    def is_same(self, other: SelectedTopic) -> bool:
        """Return whether another subscription selects the same messages of the same topic."""
        mine, others = (self.topic, self.expression), (other.topic, other.expression)
        return mine == others and self.is_sql == other.is_sql

    def data(self, version: int) -> Subscription:
        """Return what heartbeats report to brokers, under a version that is newer than the last
        one.
        """
        tags = sorted(self.tags)
        return Subscription(
            topic=self.topic,
            sub_string=self.expression,
            sub_version=version,
            expression_type=self.expression_type,
            tags_set=tags,
            code_set=sorted({hash_code(tag) for tag in tags}),
        )

    def takes(self, message: ReceivedMessage) -> bool:
        """Return whether a message has a selected tag: brokers only compare hashes of tags."""
        return not self.tags or message.tags in self.tags

    def choose(self, messages: list[M]) -> list[M]:
        """Return the messages that are selected."""
        return [message for message in messages if self.takes(message)] if self.tags else messages
