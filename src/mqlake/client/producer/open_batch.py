"""The messages of a batch, while it is collected."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import overload

from mqlake.client.message import Message
from mqlake.formats.message_batch import LEAST_SIZE
from mqlake.formats.properties import UNIQ_KEY, decode_properties
from mqlake.formats.topic_names import RETRY_PREFIX


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

    def add_plain(self, bodies: Sequence[bytes], properties: Sequence[bytes]) -> None:
        """Add messages whose flags are 0, however long they are together."""
        self.properties += properties
        self.parts += zip(repeat(0), bodies, properties)
        self.size += LEAST_SIZE * len(bodies) + sum(map(len, bodies)) + sum(map(len, properties))


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
        return decode_properties(self._properties[index])[UNIQ_KEY]


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
