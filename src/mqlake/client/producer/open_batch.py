"""The messages of a batch, while it is collected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from mqlake.client.message import Message
from mqlake.formats.message_batch import LEAST_SIZE
from mqlake.formats.properties import (
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    UNIQ_KEY,
    decode_properties,
)
from mqlake.formats.topic_names import RETRY_PREFIX

_END = PROPERTY_SEPARATOR.encode()
_UNIQUE_KEY = _END + f"{UNIQ_KEY}{NAME_VALUE_SEPARATOR}".encode()
"""Before the unique key in properties that do not begin with it."""


class OpenBatch:
    """A batch to which messages are added until it is full.

    Attributes:
        first: the first message, which is set before it is added.
        properties: of each message, encoded, its unique key included.
    """

    __slots__ = ("first", "parts", "properties", "size")

    def __init__(self, first: Message) -> None:
        self.first, self.size = first, 0
        self.properties: list[bytes] = []
        self.parts: list[tuple[int, bytes, bytes]] = []

    def add(self, message: Message, properties: bytes, most: int) -> bool:
        """Add a message with its properties; return whether there was room.

        Args:
            most: the maximum size of the batch, in bytes; only the first message may exceed it.
        """
        body, parts = message.body, self.parts
        size = self.size + LEAST_SIZE + len(body) + len(properties)
        if not parts:
            self.first = message
        elif size > most or message.waits_for_store != self.first.waits_for_store:
            return False
        self.size = size
        self.properties.append(properties)
        parts.append((message.flag, body, properties))
        return True


class MessageIds(Sequence[str]):
    """The unique keys of a batch, which are read from the encoded properties on access."""

    def __init__(self, properties: Sequence[bytes]) -> None:
        self._properties = properties

    def __len__(self) -> int:
        return len(self._properties)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return MessageIds(self._properties[index])
        properties = self._properties[index]
        _, name, after = properties.rpartition(_UNIQUE_KEY)
        if name:
            return after.partition(_END)[0].decode()
        return decode_properties(properties)[UNIQ_KEY]


def why_alone(message: Message, first: Message) -> str | None:
    """Return why a message cannot be in the batch of a first one, None if it can."""
    if message.topic != first.topic:
        return "a message has another topic"
    if message.is_delayed:
        return "a message is delayed"
    if message.has_priority:
        return "a message has a priority, which brokers ignore in batches"
    if message.topic.startswith(RETRY_PREFIX):
        return "a message goes to a retry topic"
    if message.waits_for_store != first.waits_for_store:
        return "waits_for_store differs between messages"
    return None
