"""A message, or a batch, as it goes on the wire.

Upstream: `DefaultMQProducerImpl.sendKernelImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

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
    encode_pairs,
    encode_properties,
)
from mqlake.formats.topic_names import AUTO_CREATE_TOPIC, RETRY_PREFIX
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.send import SendMessageHeaderV2

_END = PROPERTY_SEPARATOR.encode()
_PLAIN = {
    waits: encode_pairs({WAIT: text}) + f"{UNIQ_KEY}{NAME_VALUE_SEPARATOR}".encode()
    for waits, text in ((True, "true"), (False, "false"))
}
"""How the properties of a message without any of its own begin: its unique key follows."""


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


class Outgoings:
    """Makes messages ready to be sent.

    Args:
        next_key: makes unique keys.
        now: milliseconds since 1970.
        most: bytes that a message, or a batch, may have.
    """

    def __init__(
        self,
        next_key: Callable[[], str],
        now: Callable[[], int],
        compression: Compression | None,
        most: int,
    ) -> None:
        self._next_key, self._now = next_key, now
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
        key = properties.get(UNIQ_KEY) or self._next_key()
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
        keys = iter(self._next_key, "")
        keyed = [_keyed(message, keys) for message in messages]
        return self._batch(messages, keyed)

    def groups(
        self, messages: Iterable[tuple[int, Message]], most: int, keys: Iterator[str]
    ) -> Iterator[tuple[list[int], Outgoing]]:
        """Yield messages of one topic in batches, or alone, in their order, with their numbers.

        Args:
            most: bytes that a batch may have.
            keys: unique keys.

        Raises:
            FormatError: as `single`; what comes before was yielded.
        """
        numbers: list[int] = []
        group: list[Message] = []
        keyed: list[tuple[str, bytes]] = []
        size = 0
        for number, message in messages:
            if message.is_delayed or message.topic.startswith(RETRY_PREFIX):
                if numbers:
                    yield numbers, self._group(group, keyed)
                    numbers, group, keyed, size = [], [], [], 0
                yield [number], self.single(message)
                continue
            key = _keyed(message, keys)
            added = LEAST_SIZE + len(message.body) + len(key[1])
            if numbers and (
                size + added > most or message.waits_for_store != group[0].waits_for_store
            ):
                yield numbers, self._group(group, keyed)
                numbers, group, keyed, size = [], [], [], 0
            numbers.append(number)
            group.append(message)
            keyed.append(key)
            size += added
        if numbers:
            yield numbers, self._group(group, keyed)

    def _group(self, messages: Sequence[Message], keyed: Sequence[tuple[str, bytes]]) -> Outgoing:
        if len(messages) > 1:
            return self._batch(messages, keyed)
        return self.single(messages[0], {UNIQ_KEY: keyed[0][0]})

    def _batch(self, messages: Sequence[Message], keyed: Sequence[tuple[str, bytes]]) -> Outgoing:
        first = messages[0]
        body = encode_batch(
            [
                (message.flag, message.body, properties)
                for message, (_, properties) in zip(messages, keyed, strict=True)
            ]
        )
        self._check(first.topic, len(body))
        # 4.9 gives each message the batch's properties, too: no key here, unlike upstream.
        return Outgoing(
            first.topic,
            body,
            _text({WAIT: _wait(first)}),
            0,
            0,
            self._now(),
            [key for key, _ in keyed],
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
    if message.topic.startswith(RETRY_PREFIX):
        return "it goes to a retry topic"
    if message.waits_for_store != first.waits_for_store:
        return "only one of them waits for the store"
    return None


def _keyed(message: Message, keys: Iterator[str]) -> tuple[str, bytes]:
    """Return a message's unique key, and its encoded properties with it."""
    if not (message.properties or message.keys or message.tags or message.sharding_key):
        key = next(keys)
        return key, _PLAIN[message.waits_for_store] + key.encode() + _END
    properties = message.all_properties()
    key = properties.get(UNIQ_KEY) or next(keys)
    properties[UNIQ_KEY] = key
    return key, encode_properties(properties)


def _text(properties: dict[str, str]) -> str:
    return encode_properties(properties).decode()


def _wait(message: Message) -> str:
    return "true" if message.waits_for_store else "false"
