"""Records of a broker's answers as messages for gRPC clients (upstream: `GrpcConverter`)."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from mqlake.client.message import ReceivedMessage
from mqlake.errors import FormatError
from mqlake.formats.plain_record import any_at, plain_at
from mqlake.formats.properties import (
    DELAY,
    DELAY_SEC,
    DELIVER_MS,
    KEYS,
    LITE_TOPIC,
    PRIORITY,
    RETRY_TOPIC,
    SHARDING_KEY,
    TAGS,
    TRAN_MSG,
    decode_properties,
)
from mqlake.formats.sys_flag import COMPRESSED, compression
from mqlake.formats.topic_names import DLQ_PREFIX, RETRY_PREFIX
from mqlake.grpc.messages import (
    DigestType,
    Encoding,
    Message,
    MessageType,
    Resource,
    SystemProperties,
    Timestamp,
)
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.command import Body
from mqlake.protocol.messages.body_compression import decompress
from mqlake.protocol.reserved_properties import RESERVED
from mqlake.proxy.consuming.message_handle import MessageHandle

_BORN_HOST: Final = "__BORNHOST"
_TRACE_CONTEXT: Final = "TRACE_CONTEXT"
_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"
_ORIGIN_ID: Final = "DLQ_ORIGIN_MESSAGE_ID"
_TEXTS: Final = (
    ("tag", TAGS),
    ("message_group", SHARDING_KEY),
    ("trace_context", _TRACE_CONTEXT),
    ("lite_topic", LITE_TOPIC),
)
"""Fields of a message that are properties of its record."""
_DELAYED: Final = (DELAY, DELIVER_MS, DELAY_SEC)
_NUMBER: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_LARGE: Final = 256 * 1024
"""Bytes of a body from which its digest is computed in a thread."""
_INT32: Final = (1 << 31) - 1
_LAST_TIME: Final = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp() * 1000)
"""Milliseconds since 1970; a protobuf timestamp cannot be later than that year."""


def decode_stored(data: Body, broker_name: str) -> Iterator[ReceivedMessage]:
    """Yield the messages of an answer, with their bodies as they are stored.

    It ends at the first bytes that are not a record.

    Raises:
        FormatError: the first bytes are not a record.
    """
    data, at = bytes(data), 0
    while at < len(data):
        found = plain_at(data, at, len(data))
        fault: str | None = None
        if found is None:
            try:
                found, fault = any_at(data, at, len(data))
            except FormatError:
                if at:
                    return  # The messages before it are good.
                raise
        head, body, topic, properties_at = found
        at += head[0]
        properties, name = data[properties_at:at], topic.decode()
        known = decode_properties(properties)
        is_retry = name.startswith(RETRY_PREFIX)
        yield ReceivedMessage(
            topic=(known.get(RETRY_TOPIC) or name) if is_retry else name,
            body=bytes(body),
            queue=MessageQueue(name, broker_name, head[3]),
            queue_offset=head[5],
            physical_offset=head[6],
            encoded_properties=properties,
            flag=head[4],
            sys_flag=head[7],
            born_timestamp=head[8],
            born_address=head[9],
            store_timestamp=head[10],
            store_address=head[11],
            reconsume_times=head[12],
            body_fault=fault,
        )


def outgoing_message(
    message: ReceivedMessage, handle: MessageHandle | None, now: int, topic: str
) -> Message:
    """Return a message as a client gets it.

    Args:
        handle: its receipt handle; None for a message that is pulled.
        now: milliseconds since 1970.
        topic: the topic that the client requested.
    """
    properties = message.properties
    body, encoding = _body(message)
    found = Message(
        topic=resource_of(topic), user_properties=_user_properties(properties), body=body
    )
    # Messages inside are filled in where they are, which takes half the time of copying them there.
    system = found.system_properties
    _set_texts(system, properties)
    if properties.get(KEYS):
        system.keys.extend(message.keys)
    system.message_id = message.message_id
    digest = system.body_digest
    digest.type = DigestType.MD5
    digest.checksum = hashlib.md5(body, usedforsecurity=False).hexdigest().upper()
    system.body_encoding = encoding
    system.message_type = message_type(properties)
    _set_time(system.born_timestamp, message.born_timestamp)
    system.born_host = properties.get(_BORN_HOST) or message.born_host.rpartition(":")[0]
    _set_time(system.store_timestamp, message.store_timestamp)
    system.store_host = message.store_host
    if (at := _delivery_time(properties, now)) is not None:
        _set_time(system.delivery_timestamp, at)
    if handle is not None:
        system.receipt_handle = handle.text
    system.queue_id = message.queue.queue_id
    system.queue_offset = message.queue_offset
    system.delivery_attempt = min(message.reconsume_times + 1, _INT32)
    _set_dead_letter_origin(system, properties)
    if (priority := message.priority) is not None:
        system.priority = priority
    return found


async def converted(
    message: ReceivedMessage, handle: MessageHandle | None, now: int, topic: str
) -> Message:
    """Return what `outgoing_message` does; the work for a large body is done in a thread."""
    is_expanded = message.sys_flag & COMPRESSED and compression(message.sys_flag) != "zlib"
    if len(message.body) < _LARGE and not is_expanded:
        return outgoing_message(message, handle, now, topic)
    return await asyncio.to_thread(outgoing_message, message, handle, now, topic)


def message_type(properties: Mapping[str, str]) -> MessageType:
    """Return the type of a message, which follows from its properties."""
    if properties.get(TRAN_MSG) == "true":
        return MessageType.TRANSACTION
    if any(name in properties for name in _DELAYED):
        return MessageType.DELAY
    if SHARDING_KEY in properties:
        return MessageType.FIFO
    if PRIORITY in properties:
        return MessageType.PRIORITY
    return MessageType.LITE if LITE_TOPIC in properties else MessageType.NORMAL


def resource_of(name: str) -> Resource:
    """Return a topic or a group as namespace and name (upstream: `NamespaceUtil`)."""
    prefix = next((each for each in (RETRY_PREFIX, DLQ_PREFIX) if name.startswith(each)), "")
    namespace, percent, rest = name[len(prefix) :].partition("%")
    if not percent or not namespace or not rest:
        return Resource(name=name)
    return Resource(resource_namespace=namespace, name=prefix + rest)


def _body(message: ReceivedMessage) -> tuple[bytes, Encoding]:
    """Return the body to send, and its encoding.

    The clients decompress gzip and zlib only, so other bodies are decompressed here.
    """
    if not message.sys_flag & COMPRESSED:
        return message.body, Encoding.IDENTITY
    if compression(message.sys_flag) == "zlib" or message.body[:2] == b"\x1f\x8b":
        return message.body, Encoding.GZIP
    try:
        return decompress(message.body, message.sys_flag), Encoding.IDENTITY
    except FormatError:
        return message.body, Encoding.GZIP


def _user_properties(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name not in RESERVED}


def timestamp_of(milliseconds: int) -> Timestamp:
    """Return a time; one that protobuf cannot express becomes the nearest one that it can."""
    found = Timestamp()
    _set_time(found, milliseconds)
    return found


def _set_time(field: Timestamp, milliseconds: int) -> None:
    """Set a time, as `timestamp_of` returns it."""
    found = min(max(milliseconds, 0), _LAST_TIME)
    field.seconds, field.nanos = found // 1000, found % 1000 * 1_000_000


def _delivery_time(properties: Mapping[str, str], now: int) -> int | None:
    """Return when a message is delivered, in milliseconds since 1970; None for at once."""
    seconds, at = properties.get(DELAY_SEC), properties.get(DELIVER_MS)
    if seconds is not None and _NUMBER.fullmatch(seconds):
        return now + 1000 * int(seconds)
    return int(at) if at is not None and _NUMBER.fullmatch(at) else None


def _set_texts(system: SystemProperties, properties: Mapping[str, str]) -> None:
    """Set the fields that are properties of the message, those that it has."""
    for field, name in _TEXTS:
        value = properties.get(name)
        if value is not None:
            setattr(system, field, value)


def _set_dead_letter_origin(system: SystemProperties, properties: Mapping[str, str]) -> None:
    topic, message_id = properties.get(_ORIGIN_TOPIC), properties.get(_ORIGIN_ID)
    if topic is not None and message_id is not None:
        origin = system.dead_letter_queue
        origin.topic, origin.message_id = topic, message_id
