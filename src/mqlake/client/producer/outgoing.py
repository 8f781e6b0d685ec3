"""A message, or a batch, as it is sent.

Upstream: `DefaultMQProducerImpl.sendKernelImpl`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Any, cast

import msgspec

from mqlake.client.message import Message
from mqlake.client.producer.open_batch import MessageIds, OpenBatch, why_alone
from mqlake.client.routes import DEFAULT_QUEUES
from mqlake.errors import FormatError
from mqlake.formats.message_batch import LEAST_SIZE, encode_batch, encode_columns
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
from mqlake.protocol.messages.body_compression import Codec, compress
from mqlake.protocol.unique_keys import UniqueKeys

_NO_LIMIT = 1 << 62
_END = PROPERTY_SEPARATOR.encode()
_PLAIN = encode_pairs({WAIT: "true"}) + f"{UNIQ_KEY}{NAME_VALUE_SEPARATOR}".encode()
"""The beginning of the properties of a message that has none of its own: its unique key follows."""
_BESIDES_BODY = attrgetter(*(name for name in Message.__struct_fields__ if name != "body"))
_WAITS = {
    waits: encode_pairs({WAIT: text}).decode() for waits, text in ((True, "true"), (False, "false"))
}
"""The properties of a batch."""


class Compression(msgspec.Struct, frozen=True):
    """Which bodies are compressed, and how.

    Attributes:
        over: the length in bytes from which a body is compressed.
        codec: zlib, lz4 or zstd; brokers and clients before 5.0 only know zlib.
        level: the compression level of zlib or zstd.
    """

    over: int = 4096
    codec: Codec = "zlib"
    level: int = 5


class Outgoing(msgspec.Struct, gc=False):
    """One message or one batch, ready to be sent any number of times.

    Attributes:
        properties: encoded as in a record.
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
        """Return its bytes, without the header's."""
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
        keys: creates unique keys.
        now: milliseconds since 1970.
        most: the maximum size of a message, or of a batch, in bytes.
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
            FormatError: the message cannot be sent: it is too long, its body is not bytes, or its
                properties are ambiguous.
        """
        if not _has_bytes(message):
            raise _refused([message]) or TypeError(message)
        try:
            properties = message.all_properties()
            if more:
                properties |= more
            key = properties.get(UNIQ_KEY) or self._keys.next()
            properties[UNIQ_KEY] = key
            text, body = _text(properties), message.body
        except (AttributeError, TypeError) as failure:
            raise _refused([message]) or failure from None
        self._check(message.topic, len(body))
        found = self._compression
        if found is not None and len(body) >= found.over:
            body, bits = compress(body, found.codec, found.level)
            sys_flag |= bits
        return Outgoing(
            topic=message.topic,
            body=body,
            properties=text,
            sys_flag=sys_flag,
            flag=message.flag,
            born_timestamp=self._now(),
            message_ids=(key,),
        )

    def batch(self, messages: Sequence[Message]) -> Outgoing:
        """Return messages of one topic as a batch, which is stored as a whole or not at all.

        Raises:
            FormatError: the messages cannot be in one batch.
        """
        if not messages:
            raise FormatError("a batch needs at least one message")
        first = messages[0]
        for message in messages:
            if fault := why_alone(message, first):
                raise FormatError(f"the messages cannot be in one batch: {fault}")
        batch = OpenBatch(first)
        for message in messages:
            batch.add(message, self._with_key(message), _NO_LIMIT)
        return self._batch(first, encode_batch(batch.parts), batch.properties)

    def plain_groups(
        self, messages: Sequence[Message], most: int
    ) -> Iterator[tuple[Message, Outgoing]]:
        """Yield what `groups` yields, of messages that `are_plain`: without a step of the
        interpreter for each of them.
        """
        try:
            yield from self._plain_groups(messages, most)
        except (AttributeError, TypeError) as failure:
            raise _refused(messages) or failure from None

    def _plain_groups(
        self, messages: Sequence[Message], most: int
    ) -> Iterator[tuple[Message, Outgoing]]:
        bodies = [message.body for message in messages]
        besides = LEAST_SIZE + len(_PLAIN) + self._keys.length + len(_END)
        ends = [*accumulate(map(besides.__add__, map(len, bodies)))]
        first, size = 0, 0
        while first < len(messages):
            end = max(first + 1, bisect_right(ends, size + most, first))
            if end == first + 1:
                yield messages[first], self.single(messages[first])
            else:
                properties = self._keys.encoded(end - first, _PLAIN, _END)
                body = encode_columns((0,) * (end - first), bodies[first:end], properties)
                yield messages[first], self._batch(messages[first], body, properties)
            first, size = end, ends[end - 1]

    def groups(self, messages: Sequence[Message], most: int) -> Iterator[tuple[Message, Outgoing]]:
        """Yield messages of one topic in batches, or alone, in their order.

        Args:
            messages: at least one.
            most: the maximum size of a batch, in bytes.

        Yields:
            The first message of each batch, and the batch.

        Raises:
            FormatError: as for `single`; batches that were full before have been yielded.
        """
        try:
            yield from self._groups(messages, most)
        except (AttributeError, TypeError) as failure:
            raise _refused(messages) or failure from None

    def _groups(self, messages: Sequence[Message], most: int) -> Iterator[tuple[Message, Outgoing]]:
        first = messages[0]
        if first.topic.startswith(RETRY_PREFIX):
            yield from ((message, self.single(message)) for message in messages)
            return
        batch = OpenBatch(first)
        for message in messages:
            if message.is_delayed or message.has_priority:
                yield from self._group(batch)
                batch = OpenBatch(message)
                yield message, self.single(message)
                continue
            properties = self._with_key(message)
            if not batch.add(message, properties, most):
                yield from self._group(batch)
                batch = OpenBatch(message)
                batch.add(message, properties, most)
        yield from self._group(batch)

    def _group(self, batch: OpenBatch) -> Iterator[tuple[Message, Outgoing]]:
        ids = MessageIds(batch.properties)
        if len(ids) > 1:
            yield batch.first, self._batch(batch.first, encode_batch(batch.parts), batch.properties)
        elif ids:
            yield batch.first, self.single(batch.first, {UNIQ_KEY: ids[0]})

    def _with_key(self, message: Message) -> bytes:
        """Return a message's encoded properties, with a unique key."""
        properties = message.all_properties()
        if not properties.get(UNIQ_KEY):
            properties[UNIQ_KEY] = self._keys.next()
        return encode_properties(properties)

    def _batch(self, first: Message, body: bytes, properties: Sequence[bytes]) -> Outgoing:
        self._check(first.topic, len(body))
        # RocketMQ 4.9 gives each message the batch's properties, too: hence no key here, unlike
        # upstream.
        return Outgoing(
            topic=first.topic,
            body=body,
            properties=_WAITS[first.waits_for_store],
            sys_flag=0,
            flag=0,
            born_timestamp=self._now(),
            message_ids=MessageIds(properties),
            is_batch=True,
            code=RequestCode.SEND_BATCH_MESSAGE,
        )

    def _check(self, topic: str, size: int) -> None:
        if not topic:
            raise FormatError("a message needs a topic")
        if size > self._most:
            raise FormatError(
                f"topic {topic}: a message of {size} bytes exceeds the maximum of {self._most}"
            )


def are_plain(messages: Sequence[Message]) -> bool:
    """Return whether messages have one topic, and nothing else but bodies."""
    try:
        topic, besides = messages[0].topic, [*map(_BESIDES_BODY, messages)]
    except AttributeError:  # One of them is something else.
        return False
    is_plain = besides[0] == _BESIDES_BODY(Message(topic=topic, body=b""))
    is_plain = is_plain and besides.count(besides[0]) == len(besides)
    return is_plain and not topic.startswith(RETRY_PREFIX)


def _has_bytes(message: object) -> bool:
    if not isinstance(message, Message):
        return False
    body: Any = message.body
    return isinstance(body, bytes | bytearray | memoryview)


def _refused(messages: Iterable[object]) -> FormatError | None:
    """Return which of some messages cannot be sent, and why; None if all can.

    What Python raises while a message is encoded names no field.
    """
    for message in messages:
        if not isinstance(message, Message):
            kind = type(message)
            return FormatError(f"{kind.__module__}.{kind.__name__} is not a mqlake.client.Message")
        if why := _wrong_field(message):
            return FormatError(f"topic {message.topic}: {why}")
    return None


def _wrong_field(message: Message) -> str | None:
    if not _has_bytes(message):
        kind = type(message.body).__name__
        return f"a body is bytes, not {kind}: encode a text with text.encode()"
    keys: Any = message.keys
    listed = cast("Sequence[Any]", keys) if isinstance(keys, list | tuple) else (keys or "",)
    texts: list[tuple[str, Any]] = [("tags", message.tags or "")]
    texts += [("keys", key) for key in listed]
    texts += [("properties", text) for pair in message.properties.items() for text in pair]
    texts += [("sharding_key", message.sharding_key or "")]
    wrong = ((name, text) for name, text in texts if not isinstance(text, str))
    return next(
        (f"{name}: {text!r} is not a text; give {str(text)!r}" for name, text in wrong), None
    )


def _text(properties: dict[str, str]) -> str:
    return encode_properties(properties).decode()
