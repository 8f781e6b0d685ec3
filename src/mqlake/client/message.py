"""Messages as a client sends and receives them.

Upstream: `Message`, `MessageExt`, `MessageConst`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mqlake.errors import FormatError
from mqlake.formats.host import decode_host
from mqlake.formats.message_id import encode_message_id
from mqlake.formats.properties import (
    DELAY,
    DELAY_MS,
    DELAY_SEC,
    DELIVER_MS,
    KEY_SEPARATOR,
    KEYS,
    MAX_PRIORITY,
    PRIORITY,
    RETRY_TOPIC,
    SHARDING_KEY,
    TAGS,
    UNIQ_KEY,
    WAIT,
    decode_properties,
    key_list,
    priority_of,
)
from mqlake.protocol.bodies.message_queue import MessageQueue

DELAYS = frozenset((DELAY, DELAY_MS, DELIVER_MS, DELAY_SEC))
"""Properties that ask for a delay."""


class Message(msgspec.Struct, kw_only=True, gc=False):
    """A message to send.

    Attributes:
        tags: the tag by which consumers of its topic select messages; one word.
        keys: words by which it can be found later, separated by spaces.
        properties: further names and values.
        sharding_key: messages with the same sharding key go to the same queue, in their order.
        priority: a number from 0, for topics with priorities (docs/priorities.md). Brokers drop it
            from messages that have a sharding key or a delay, or belong to a transaction.
        delay_level: the message is delivered after the broker's delay of this level
            (`messageDelayLevel`: 1 s, 5 s, 10 s, …); 0 for no delay.
        delay: milliseconds until it is delivered.
        deliver_at: when it is delivered, milliseconds since 1970.
        flag: a number that RocketMQ stores with the message.
        waits_for_store: whether it is acknowledged only once it is as durable as the broker is set
            to make it.
    """

    topic: str
    body: bytes
    tags: str | None = None
    keys: str | Sequence[str] = ()
    properties: dict[str, str] = {}
    sharding_key: str | None = None
    priority: int | None = None
    delay_level: int = 0
    delay: int | None = None
    deliver_at: int | None = None
    flag: int = 0
    waits_for_store: bool = True

    @property
    def is_delayed(self) -> bool:
        """Return whether it is delivered later, by an attribute or by a property."""
        if self.properties and not DELAYS.isdisjoint(self.properties):
            return True
        return self._has_delay

    @property
    def has_priority(self) -> bool:
        """Return whether it has a priority, by the attribute or by a property."""
        return self.priority is not None or PRIORITY in self.properties

    @property
    def _has_delay(self) -> bool:
        return bool(self.delay_level) or self.delay is not None or self.deliver_at is not None

    def all_properties(self) -> dict[str, str]:
        """Return the properties that are sent, without a unique key.

        Raises:
            FormatError: it has two kinds of delay at once, or a priority that is out of range.
        """
        found = self.properties.copy()
        keys = self.keys if isinstance(self.keys, str) else KEY_SEPARATOR.join(self.keys)
        if keys:
            found[KEYS] = keys
        if self.tags:
            found[TAGS] = self.tags
        if self.sharding_key is not None:
            found[SHARDING_KEY] = self.sharding_key
        if self.priority is not None:
            if not 0 <= self.priority <= MAX_PRIORITY:
                raise FormatError(f"priority {self.priority} is not between 0 and {MAX_PRIORITY}")
            found[PRIORITY] = str(self.priority)
        if self._has_delay:
            name, value = self._delay_property()
            found[name] = value
        found[WAIT] = "true" if self.waits_for_store else "false"
        return found

    def _delay_property(self) -> tuple[str, str]:
        delays = {
            DELAY: self.delay_level or None,
            DELAY_MS: self.delay,
            DELIVER_MS: self.deliver_at,
        }
        given = [(name, str(value)) for name, value in delays.items() if value is not None]
        if len(given) > 1:
            raise FormatError("a message can have only one of delay_level, delay and deliver_at")
        return given[0]


class ReceivedMessage(msgspec.Struct, eq=False):
    """A message that was received from a broker.

    Attributes that are seldom used are decoded on first access.

    Attributes:
        topic: the topic that was subscribed to, even if the message came through a retry topic.
        queue: the queue that it was read from.
        queue_offset: its number in that queue.
        physical_offset: its position in the broker's commit log, in bytes; -1 for a reply.
        encoded_properties: its properties as they are stored.
        born_timestamp, store_timestamp: when it was sent and stored, milliseconds since 1970.
        born_address, store_address: the addresses of its producer and its broker: 4 or 16 bytes,
            and 4 bytes for the port; empty if unknown.
        reconsume_times: how many times it was delivered to the group before.
        body_fault: why `body` is not what the producer sent: it cannot be decompressed, or its
            checksum is wrong. None if it is.
    """

    topic: str
    body: bytes
    queue: MessageQueue
    queue_offset: int
    physical_offset: int
    encoded_properties: bytes
    flag: int
    sys_flag: int
    born_timestamp: int
    born_address: bytes
    store_timestamp: int
    store_address: bytes
    reconsume_times: int
    body_fault: str | None = None
    _properties: dict[str, str] | None = None

    @property
    def properties(self) -> dict[str, str]:
        """Return all properties, those of RocketMQ included."""
        found = self._properties
        if found is None:
            found = self._properties = decode_properties(self.encoded_properties)
        return found

    @property
    def message_id(self) -> str:
        """Return the unique key, which the producer's `SendResult` has, too.

        This is the offset message id if the producer set none.
        """
        return self.properties.get(UNIQ_KEY) or self.offset_message_id

    @property
    def offset_message_id(self) -> str:
        """Return its offset message id: the broker's address and the physical offset. Replies have
        "".
        """
        if self.physical_offset < 0 or not self.store_address:
            return ""
        return encode_message_id(self.store_address, self.physical_offset)

    @property
    def born_host(self) -> str:
        """Return "address:port" of its producer."""
        return decode_host(self.born_address) if self.born_address else ""

    @property
    def store_host(self) -> str:
        """Return "address:port" of its broker."""
        return decode_host(self.store_address) if self.store_address else ""

    @property
    def tags(self) -> str | None:
        """Return the tag by which consumers select it."""
        return self.properties.get(TAGS)

    @property
    def keys(self) -> list[str]:
        """Return the keys by which it can be found."""
        return key_list(self.properties)

    @property
    def priority(self) -> int | None:
        """Return its priority, None if it has none."""
        return priority_of(self.properties)

    @property
    def unique_key(self) -> str | None:
        """Return the unique key, None if the producer set none."""
        return self.properties.get(UNIQ_KEY)

    @property
    def retry_topic(self) -> str | None:
        """Return the retry topic that it came through, None if it is delivered for the first
        time.
        """
        return self.queue.topic if RETRY_TOPIC in self.properties else None
