"""A message, or a batch, as it goes on the wire.

Upstream: `DefaultMQProducerImpl.sendKernelImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

import msgspec

from mqlake.client.bodies import Codec, compress
from mqlake.client.message import Message
from mqlake.client.routes import DEFAULT_QUEUES
from mqlake.errors import FormatError
from mqlake.formats.message_batch import LEAST_SIZE, encode_batch
from mqlake.formats.properties import (
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    UNIQ_KEY,
    WAIT,
    decode_properties,
    encode_pairs,
    encode_properties,
)
from mqlake.formats.topic_names import AUTO_CREATE_TOPIC, RETRY_PREFIX
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.protocol.unique_keys import UniqueKeys

_NO_LIMIT = 1 << 62
_END = PROPERTY_SEPARATOR.encode()
_PLAIN = {
    waits: encode_pairs({WAIT: text}) + f"{UNIQ_KEY}{NAME_VALUE_SEPARATOR}".encode()
    for waits, text in ((True, "true"), (False, "false"))
}
"""How the properties of a message without any of its own begin: its unique key follows."""
_WAITS = {
    waits: encode_pairs({WAIT: text}).decode() for waits, text in ((True, "true"), (False, "false"))
}
"""The properties of a batch."""


class Compression(msgspec.Struct, frozen=True):
    """Which bodies are compressed, and how.

    Attributes:
        over: bytes from which on a body is.
        codec: zlib, lz4 or zstd; brokers and clients before 5.0 only know zlib.
        level: of zlib or zstd.
    """

    over: int = 4096
    codec: Codec = "zlib"
    level: int = 5


class Outgoing(msgspec.Struct, gc=False):
    """One message or one batch, ready to be sent any number of times.

    Attributes:
        properties: as a record holds them.
        message_ids: unique keys of its messages.
    """

    topic: str
    body: bytes
    properties: str
    sys_flag: int
    flag: int
    born_timestamp: int
    message_ids: Sequence[str]
    is_batch: bool = False
    code: RequestCode = RequestCode.SEND_MESSAGE_V2

    @property
    def size(self) -> int:
        """Return its bytes, but for the header's."""
        return len(self.body) + len(self.properties)

    def command(self, group: str, queue: MessageQueue) -> Command:
        """Return the request that stores it in a queue."""
        header = SendMessageHeaderV2(
            producer_group=group,
            topic=self.topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=DEFAULT_QUEUES,
            queue_id=queue.queue_id,
            sys_flag=self.sys_flag,
            born_timestamp=self.born_timestamp,
            flag=self.flag,
            properties=self.properties,
            reconsume_times=0,
            unit_mode=False,
            batch=self.is_batch,
        )
        return request(self.code, header, self.body)


class _MessageIds(Sequence[str]):
    """The unique keys of a batch, read off the encoded properties when they are asked for."""

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
            return _MessageIds(self._properties[index])
        return decode_properties(self._properties[index])[UNIQ_KEY]


class _Draft:
    """The messages of a batch.

    Attributes:
        first: the first one, also before it is added.
        properties: of each message, encoded, its unique key included.
    """

    __slots__ = ("first", "parts", "properties", "size")

    def __init__(self, first: Message) -> None:
        self.first, self.size = first, 0
        self.properties: list[bytes] = []
        self.parts: list[tuple[int, bytes, bytes]] = []

    def add(self, message: Message, properties: bytes, most: int) -> bool:
        """Add a message with its properties; say whether there was room.

        Args:
            most: bytes that all of them may have; the first one may have more.
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


class Outgoings:
    """Makes messages ready to be sent.

    Args:
        keys: makes unique keys.
        now: milliseconds since 1970.
        most: bytes that a message, or a batch, may have.
    """

    def __init__(
        self,
        keys: UniqueKeys,
        now: Callable[[], int],
        compression: Compression | None,
        most: int,
    ) -> None:
        self._keys, self._now = keys, now
        self._compression, self._most = compression, most

    def single(
        self, message: Message, more: dict[str, str] | None = None, sys_flag: int = 0
    ) -> Outgoing:
        """Return one message.

        Args:
            more: further properties.

        Raises:
            FormatError: it cannot be sent: too long, or what it has cannot be told apart.
        """
        properties = message.all_properties()
        if more:
            properties |= more
        key = properties.get(UNIQ_KEY) or self._keys.next()
        properties[UNIQ_KEY] = key
        body = message.body
        self._check(message.topic, len(body))
        found = self._compression
        if found is not None and len(body) >= found.over:
            body, bits = compress(body, found.codec, found.level)
            sys_flag |= bits
        return Outgoing(
            message.topic,
            body,
            _text(properties),
            sys_flag,
            message.flag,
            self._now(),
            (key,),
        )

    def batch(self, messages: Sequence[Message]) -> Outgoing:
        """Return messages of one topic as a batch, which is stored as a whole or not at all.

        Raises:
            FormatError: they do not go into one batch.
        """
        if not messages:
            raise FormatError("a batch has a message at least")
        first = messages[0]
        for message in messages:
            if fault := why_alone(message, first):
                raise FormatError(f"not in a batch: {fault}")
        draft = _Draft(first)
        for message in messages:
            draft.add(message, self._with_key(message), _NO_LIMIT)
        return self._batch(draft)

    def groups(self, messages: Sequence[Message], most: int) -> Iterator[tuple[Message, Outgoing]]:
        """Yield messages of one topic in batches, or alone, in their order.

        Args:
            messages: at least one.
            most: bytes that a batch may have.

        Yields:
            The first message of each batch, and the batch.

        Raises:
            FormatError: as `single`; batches that were full before were yielded.
        """
        first = messages[0]
        if first.topic.startswith(RETRY_PREFIX):
            yield from ((message, self.single(message)) for message in messages)
            return
        plain = self._plain_properties()
        draft = _Draft(first)
        for message in messages:
            if message.is_delayed or message.has_priority:
                yield from self._group(draft)
                draft = _Draft(message)
                yield message, self.single(message)
                plain = self._plain_properties()
                continue
            is_plain = not (message.properties or message.keys or message.tags)
            if is_plain and message.sharding_key is None:
                properties = next(plain[message.waits_for_store])
            else:
                properties = self._with_key(message)
            if not draft.add(message, properties, most):
                yield from self._group(draft)
                plain = self._plain_properties()  # keys are of the moment
                draft = _Draft(message)
                draft.add(message, properties, most)
        yield from self._group(draft)

    def _group(self, draft: _Draft) -> Iterator[tuple[Message, Outgoing]]:
        ids = _MessageIds(draft.properties)
        if len(ids) > 1:
            yield draft.first, self._batch(draft)
        elif ids:
            yield draft.first, self.single(draft.first, {UNIQ_KEY: ids[0]})

    def _plain_properties(self) -> dict[bool, Iterator[bytes]]:
        """Return the properties of messages that have none of their own, by `waits_for_store`."""
        return {waits: self._keys.encoded(start, _END) for waits, start in _PLAIN.items()}

    def _with_key(self, message: Message) -> bytes:
        """Return a message's encoded properties, with a unique key."""
        properties = message.all_properties()
        if not properties.get(UNIQ_KEY):
            properties[UNIQ_KEY] = self._keys.next()
        return encode_properties(properties)

    def _batch(self, draft: _Draft) -> Outgoing:
        topic, body = draft.first.topic, encode_batch(draft.parts)
        self._check(topic, len(body))
        # 4.9 gives each message the batch's properties, too: no key here, unlike upstream.
        return Outgoing(
            topic,
            body,
            _WAITS[draft.first.waits_for_store],
            0,
            0,
            self._now(),
            _MessageIds(draft.properties),
            is_batch=True,
            code=RequestCode.SEND_BATCH_MESSAGE,
        )

    def _check(self, topic: str, size: int) -> None:
        if not topic:
            raise FormatError("a message has a topic")
        if size > self._most:
            raise FormatError(f"topic {topic}: {size} bytes are more than {self._most}, the most")


def why_alone(message: Message, first: Message) -> str | None:
    """Return why a message does not go into the batch of a first one, None if it does."""
    if message.topic != first.topic:
        return "it has another topic"
    if message.is_delayed:
        return "it is delayed"
    if message.has_priority:
        return "it has a priority, which brokers do not look for in batches"
    if message.topic.startswith(RETRY_PREFIX):
        return "it goes to a retry topic"
    if message.waits_for_store != first.waits_for_store:
        return "only one of them waits for the store"
    return None


def _text(properties: dict[str, str]) -> str:
    return encode_properties(properties).decode()
