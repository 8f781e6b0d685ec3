"""The checks of a message before it is appended, and the refusals.

Upstream: `HookUtils.checkBeforePutMessage`, `DefaultMessageStore.asyncPutMessage`,
`MessageExtEncoder.encode`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import host, properties, record, record_crc, sys_flag
from mqlake.formats.file_name import MAX_NAME_BYTES, is_safe_topic
from mqlake.formats.properties import MAX_LENGTH
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.live_settings import Current
from mqlake.store.settings import StoreSettings

_INNER_NUM, _INNER_BATCH = properties.INNER_NUM.encode(), sys_flag.INNER_BATCH
_CRC_SIZE, _SEPARATOR = record_crc.SIZE, record_crc.SEPARATOR
_PAIR_END, _KEY_SEPARATOR = properties.PROPERTY_SEPARATOR, properties.KEY_SEPARATOR
_KEYS, _TAGS, _DELAY = (
    f"{name}{properties.NAME_VALUE_SEPARATOR}"
    for name in (properties.KEYS, properties.TAGS, properties.DELAY)
)
_MOST_CACHED = 4096
# Bytes that the records of a batch may have in addition to the longest body.
_MOST_BESIDES_BODIES = 64 << 10


class Refusal(Exception):  # noqa: N818
    """A message is refused."""

    def __init__(self, status: PutStatus, reason: str) -> None:
        super().__init__(reason)
        self.result = PutResult(status, reason=reason)


class TopicPart(NamedTuple):
    """A topic as encoded in records."""

    magic: int
    data: bytes
    """The length, in one byte or (version 2) two, and the topic."""


class Sender(NamedTuple):
    """The sender of a message, as encoded in records."""

    host: bytes
    """The born host: 8 or 20 bytes."""
    host_bits: int
    """The bits of the system flag that say which hosts, born and store, are IPv6."""


class AppendChecks:
    """The limits of a store, and the encoders of topic and sender.

    Attributes:
        refusal: why all messages are refused; None if they are accepted.
        longest_body, largest_record: maximum sizes, in bytes.
        appends_crc: whether records contain their CRC in a property.
        crc_size: bytes of that property; 0 if records have no such property.
        store_host: 8 or 20 bytes.
        topic: text → its part of a record; version 2 if it has more than 127 bytes. Raises
            MESSAGE_ILLEGAL if it is too long, or cannot be the name of a directory.
        sender: "address:port", or "" for the store itself → Sender. Raises MESSAGE_ILLEGAL.
    """

    def __init__(self, settings: Current[StoreSettings], largest_record: int) -> None:
        self._settings = settings
        self.largest_record = largest_record
        self._shut_down: str | None = None
        self._not_writable: str | None = None
        self.refusal: str | None = None
        self.appends_crc = settings.now.enabled_append_prop_crc
        self.crc_size = _CRC_SIZE if self.appends_crc else 0
        self.store_host = host.encode_host(_address(settings.now))
        self.topic = lru_cache(_MOST_CACHED)(self._encode_topic)
        self.sender = lru_cache(_MOST_CACHED)(self._encode_sender)
        self._update()
        self._read_limits()
        settings.on_change(self._update, "broker_role")
        settings.on_change(
            self._read_limits, "max_message_size", "auto_message_version_on_topic_len"
        )

    def _read_limits(self) -> None:
        settings = self._settings.now
        self.longest_body = settings.max_message_size
        self._longest_topic = (
            MAX_NAME_BYTES if settings.auto_message_version_on_topic_len else record.MAX_TOPIC_V1
        )
        self.topic.cache_clear()

    def shut_down(self, reason: str) -> None:
        """Accept no more messages, for this reason."""
        self._shut_down = reason
        self._update()

    def set_not_writable(self, reason: str | None) -> None:
        """Refuse messages for this reason; None: accept them again."""
        self._not_writable = reason
        self._update()

    def _update(self) -> None:
        if self._shut_down is not None:
            self.refusal = self._shut_down
        elif self._settings.now.is_slave:
            self.refusal = "this store belongs to a slave: put messages to its master"
        else:
            self.refusal = self._not_writable and f"the store is read-only: {self._not_writable}"

    def _encode_topic(self, topic: str) -> TopicPart:
        data = topic.encode("utf-8", "surrogatepass")
        if len(data) > self._longest_topic:
            raise illegal(f"the topic has {len(data)} bytes; the maximum is {self._longest_topic}")
        if not is_safe_topic(data):
            raise illegal(f"not a valid topic name: {topic!r}")
        if len(data) > record.MAX_TOPIC_V1:
            return TopicPart(record.V2_MAGIC, len(data).to_bytes(2, "big") + data)
        return TopicPart(record.V1_MAGIC, len(data).to_bytes(1, "big") + data)

    def _encode_sender(self, born_host: str) -> Sender:
        try:
            data = host.encode_host(born_host) if born_host else self.store_host
        except FormatError as error:
            raise illegal(f"born host: {error}") from None
        bits = _v6_bit(data, sys_flag.BORN_HOST_V6)
        return Sender(data, bits | _v6_bit(self.store_host, sys_flag.STORE_HOST_V6))

    def sizes(self, body: int, size: int) -> None:
        """Check the size of a body, and of its record or of all records of a batch.

        Raises:
            Refusal: MESSAGE_ILLEGAL: it is too large.
        """
        if body > self.longest_body:
            most = self.longest_body
            raise illegal(f"the body has {body} bytes; the maximum (maxMessageSize) is {most}")
        if size > self.largest_record:
            raise illegal(f"{size} bytes do not fit into one file of the commit log")

    def batch_size(self, size: int) -> None:
        """Check the size of all records of a batch: they are put in one piece.

        Raises:
            Refusal: MESSAGE_ILLEGAL: it is too large.

        Upstream: `MessageExtEncoder`.
        """
        if size > (most := self.longest_body + _MOST_BESIDES_BODIES):
            raise illegal(
                f"the records of the batch have {size} bytes; the maximum is {most} "
                "(maxMessageSize and 64 KiB): send fewer messages in a batch"
            )


def encode_properties(message: Message, crc_size: int = 0, *, is_inner: bool = False) -> bytes:
    """Return a message's properties as they are stored.

    A record CRC in the message is dropped: a message that was read and is put again has one.

    Args:
        crc_size: bytes of the record's own CRC property, which follows them; 0 without it.
        is_inner: whether the message is an inner batch, as its encoded properties say.

    Raises:
        Refusal: MESSAGE_ILLEGAL: the properties cannot be stored, or are those of an inner batch,
            which only a batch may have; PROPERTIES_SIZE_EXCEEDED: they exceed 32767 bytes,
            including the CRC.
    """
    if message.sys_flag & _INNER_BATCH and not is_inner:
        raise _inner_batch()
    data = message.encoded_properties
    try:
        if is_inner and data is not None:
            pass  # The store itself made it.
        elif data is not None:
            if _INNER_NUM in data and properties.INNER_NUM in properties.decode_properties(data):
                raise _inner_batch()
            data = record_crc.drop(data)
        elif message.properties:
            # If a name occurs several times, readers take the last value.
            data = _encode_others(message.properties) + _encode_attributes(message)
        else:
            data = _encode_attributes(message)
    except (FormatError, UnicodeEncodeError) as error:
        raise illegal(f"properties: {error}") from None
    length = len(data)
    if crc_size:
        if length and data[-1] != _SEPARATOR:
            data += _PAIR_END.encode()
            length += 1
        length += crc_size
    if length > MAX_LENGTH:
        raise too_long(length)
    return data


def too_long(length: int) -> Refusal:
    """Return the refusal of properties that need `length` bytes in a record."""
    return Refusal(
        PutStatus.PROPERTIES_SIZE_EXCEEDED,
        f"the properties have {length} bytes; the maximum is {MAX_LENGTH}",
    )


def _encode_attributes(message: Message) -> bytes:
    keys, tags, delay_level = message.keys, message.tags, message.delay_level
    if not isinstance(keys, str):
        keys = _KEY_SEPARATOR.join(keys)
    text = f"{_KEYS}{keys}{_PAIR_END}" if keys else ""
    if tags:
        text = f"{text}{_TAGS}{tags}{_PAIR_END}"
    if _PAIR_END in keys or (tags and _PAIR_END in tags):
        raise FormatError("tags and keys cannot contain the character U+0002")
    if delay_level:
        text = f"{text}{_DELAY}{delay_level}{_PAIR_END}"
    return text.encode()


def _encode_others(pairs: Mapping[str, str]) -> bytes:
    if properties.INNER_NUM in pairs:
        raise _inner_batch()
    if record_crc.NAME in pairs:
        pairs = {name: value for name, value in pairs.items() if name != record_crc.NAME}
    return properties.encode_pairs(pairs)


def _inner_batch() -> Refusal:
    return illegal(
        f"{properties.INNER_NUM} and its flag are reserved for the broker: send a batch instead"
    )


def wrong_type(what: Message | MessageBatch) -> str | None:
    """Return the field that has another type than declared; None if all types are right."""
    try:
        values = msgspec.structs.asdict(what)
        packed = list(values.values()) if isinstance(what, Message) else values
        msgspec.convert(packed, type(what), builtin_types=(bytes, bytearray, memoryview))
    except (TypeError, msgspec.ValidationError) as error:
        return str(error)
    return None


def illegal(reason: str) -> Refusal:
    """Return the refusal of a message that every store would refuse."""
    return Refusal(PutStatus.MESSAGE_ILLEGAL, reason)


def _v6_bit(data: bytes, bit: int) -> int:
    return bit if len(data) == host.V6_SIZE else 0


def _address(settings: StoreSettings) -> str:
    address = settings.broker_ip1
    return f"{f'[{address}]' if ':' in address else address}:{settings.listen_port}"
