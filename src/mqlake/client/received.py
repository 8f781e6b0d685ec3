"""Records of a broker's answers, as messages (upstream: `MessageDecoder.decodes`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from mqlake.client.bodies import MAX_BODY, decompress
from mqlake.client.message import ReceivedMessage
from mqlake.errors import FormatError
from mqlake.formats.properties import RETRY_TOPIC
from mqlake.formats.record import Record, decode
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
    at, left = 0, MAX_BODIES
    while at < len(data):
        try:
            record, fault = decode(data, at), None
        except FormatError as error:
            try:
                record, fault = decode(data, at, crc=False), str(error)
            except FormatError:
                if at:
                    return  # what comes before is good, and is not held up
                raise
        message = received(record, broker_name, kind, min(left, MAX_BODY))
        message.body_fault = message.body_fault or fault
        left -= len(message.body)
        yield message
        at += record.size


def received(record: Record, broker_name: str, kind: type[M], longest: int) -> M:
    """Return a record as a message; a body that cannot be decompressed stays as it is.

    Args:
        longest: bytes that the body may have once it is decompressed.
    """
    body, fault = record.body, None
    try:
        body = decompress(body, record.sys_flag, max(0, longest))
    except FormatError as error:
        fault = str(error)
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
