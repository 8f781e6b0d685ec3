"""Records of a broker's answers, as messages (upstream: `MessageDecoder.decodes`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from mqlake.client.bodies import MAX_BODY, decompress
from mqlake.client.message import ReceivedMessage
from mqlake.errors import FormatError
from mqlake.formats.host import decode_host
from mqlake.formats.message_id import encode_message_id
from mqlake.formats.plain_record import Plain, plain_at
from mqlake.formats.properties import RETRY_TOPIC, UNIQ_KEY, decode_properties
from mqlake.formats.record import Record, decode
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.command import Body

MAX_BODIES = 4 * MAX_BODY
"""Bytes that all bodies of one answer may have once they are decompressed."""

M = TypeVar("M", bound=ReceivedMessage)


def decode_messages(data: Body, broker_name: str, kind: type[M]) -> Iterator[M]:
    """Yield the messages of an answer, one record behind the other.

    Args:
        broker_name: of the broker that answered.
        kind: `ReceivedMessage`, or what a consumer makes of it.

    A body whose checksum is wrong is handed over with a `body_fault`.

    Raises:
        FormatError: the first bytes are no record.
    """
    data = bytes(data)
    at, end, left = 0, len(data), MAX_BODIES
    queues: dict[tuple[bytes, int], MessageQueue] = {}
    while at < end:
        plain = plain_at(data, at, end)
        if plain is not None:
            head, _, topic, _ = plain
            place, size = (topic, head[3]), head[0]
            queue = queues.get(place)
            if queue is None:
                queue = queues[place] = MessageQueue(topic.decode(), broker_name, head[3])
            message = _plain(data, at + size, plain, queue, kind, min(left, MAX_BODY))
        else:
            try:
                record, fault = _decode(data, at)
            except FormatError:
                if at:
                    return  # what comes before is good, and is not held up
                raise
            size, message = record.size, _received(record, broker_name, kind, min(left, MAX_BODY))
            message.body_fault = message.body_fault or fault
        left -= len(message.body)
        yield message
        at += size


def _plain(
    data: bytes, end: int, plain: Plain, queue: MessageQueue, kind: type[M], longest: int
) -> M:
    """Return a record that ends at `end` as a message."""
    head, body_at, _, properties_at = plain
    properties = decode_properties(data[properties_at:end])
    sys_flag, physical_offset, store_host = head[7], head[6], head[11]
    body, fault = data[body_at : body_at + head[14]], None
    if sys_flag & COMPRESSED:
        body, fault = _expand(body, sys_flag, longest)
    offset_message_id = encode_message_id(store_host, physical_offset)
    topic = queue.topic
    if topic.startswith(RETRY_PREFIX):
        topic = properties.get(RETRY_TOPIC) or topic
    return kind(
        topic=topic,
        body=body,
        queue=queue,
        queue_offset=head[5],
        physical_offset=physical_offset,
        message_id=properties.get(UNIQ_KEY) or offset_message_id,
        offset_message_id=offset_message_id,
        properties=properties,
        flag=head[4],
        sys_flag=sys_flag,
        born_timestamp=head[8],
        born_host=decode_host(head[9]),
        store_timestamp=head[10],
        store_host=decode_host(store_host),
        reconsume_times=head[12],
        body_fault=fault,
    )


def _decode(data: bytes, at: int) -> tuple[Record, str | None]:
    """Return the record at `at`, and what is wrong with its body, if anything is."""
    try:
        return decode(data, at), None
    except FormatError as error:
        return decode(data, at, crc=False), str(error)


def _expand(body: bytes, sys_flag: int, longest: int) -> tuple[bytes, str | None]:
    """Return a body decompressed; as it is, and why, if that cannot be done."""
    try:
        return decompress(body, sys_flag, max(0, longest)), None
    except FormatError as error:
        return body, str(error)


def _received(record: Record, broker_name: str, kind: type[M], longest: int) -> M:
    """Return a record as a message; a body that cannot be decompressed stays as it is.

    Args:
        longest: bytes that the body may have once it is decompressed.
    """
    body, fault = _expand(record.body, record.sys_flag, longest)
    offset_message_id = record.message_id
    topic = record.topic
    if topic.startswith(RETRY_PREFIX):
        topic = record.properties.get(RETRY_TOPIC) or topic
    return kind(
        topic=topic,
        body=body,
        queue=MessageQueue(record.topic, broker_name, record.queue_id),
        queue_offset=record.queue_offset,
        physical_offset=record.physical_offset,
        message_id=record.unique_key or offset_message_id,
        offset_message_id=offset_message_id,
        properties=record.properties,
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        store_timestamp=record.store_timestamp,
        store_host=record.store_host,
        reconsume_times=record.reconsume_times,
        body_fault=fault,
    )
