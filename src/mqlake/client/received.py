"""Decode the records of a broker's answers as messages (upstream: `MessageDecoder.decodes`)."""

from __future__ import annotations

import struct
from typing import TypeVar

import msgspec

from mqlake.client.message import ReceivedMessage
from mqlake.errors import FormatError
from mqlake.formats.batch_consume_queue import MOST_MESSAGES
from mqlake.formats.inner_batch import FLAGS, is_wrapped
from mqlake.formats.plain_record import Plain, any_at, plain_at
from mqlake.formats.properties import RETRY_TOPIC, decode_properties
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.command import Body
from mqlake.protocol.messages.body_compression import MAX_BODY, decompress
from mqlake.protocol.messages.inner_batches import parts

MAX_BODIES = 4 * MAX_BODY
"""The maximum size of all bodies of one answer after decompression, in bytes."""

_MOST_UNWRAPPED = MOST_MESSAGES
"""Messages of an answer after which no further inner batch is split: empty ones need few bytes."""

M = TypeVar("M", bound=ReceivedMessage)


def decode_messages(data: Body, broker_name: str, kind: type[M]) -> list[M]:
    """Return the messages of an answer up to the first bytes that are not a record.

    Args and Raises are as for `decode_run`.
    """
    return decode_run(data, broker_name, kind)[0]


def decode_run(
    data: Body, broker_name: str, kind: type[M], first: int | None = None
) -> tuple[list[M], int]:
    """Return the messages of an answer, whose records are consecutive, and where they end.

    The end is the length of the answer, or the position of the first bytes that are not a record,
    or of the record that follows very many messages of inner batches, or bodies that are very long
    once they are decompressed.

    Args:
        broker_name: the name of the broker that answered.
        kind: `ReceivedMessage`, or a subclass of it.
        first: split inner batches, and leave out their messages before this queue offset. None:
            return each inner batch as one message.

    A body whose checksum is wrong is returned with a `body_fault`.

    Raises:
        FormatError: there are bytes that are not a record, and no message before them.
    """
    data, made = bytes(data), list[M]()
    at, end, left = 0, len(data), MAX_BODIES
    queues: dict[tuple[bytes, int], MessageQueue] = {}
    while at < end:
        found, fault = plain_at(data, at, end), None
        if found is None:
            try:
                found, fault = any_at(data, at, end)
            except FormatError:
                if made:
                    break  # The messages before it are good, and are not held up.
                raise
        head, _, topic, _ = found
        place = topic, head[3]
        queue = queues.get(place)
        if queue is None:
            queue = queues[place] = MessageQueue(topic.decode(), broker_name, head[3])
        after = at + head[0]
        message = _message(data, after, found, queue, kind, min(left, MAX_BODY))
        if message.body_fault and made and left < MAX_BODY:
            break  # The bodies before it leave too little memory for its own.
        at = after
        if fault:
            message.body_fault = message.body_fault or fault
        left -= len(message.body)
        if first is not None and is_wrapped(head[7]) and message.body_fault is None:
            made += _unwrapped(message, first)
            if len(made) >= _MOST_UNWRAPPED:
                break
        else:
            made.append(message)
    return made, at


def _unwrapped(wrapped: M, first: int) -> list[M]:
    """Return the messages of an inner batch from a queue offset on."""
    found, flags = list[M](), wrapped.sys_flag & ~FLAGS
    try:
        for offset, (flag, body, properties) in enumerate(
            parts(wrapped.body), wrapped.queue_offset
        ):
            if offset >= first:
                found.append(
                    msgspec.structs.replace(
                        wrapped,
                        queue_offset=offset,
                        flag=flag,
                        sys_flag=flags,
                        body=body,
                        encoded_properties=properties,
                    )
                )
    except FormatError as error:
        wrapped.body_fault = f"an inner batch cannot be split into messages: {error}"
        return [wrapped]
    return found


_QUEUE_ID, _QUEUE_OFFSET = struct.Struct(">i"), struct.Struct(">q")
_SIZE_AT, _QUEUE_ID_AT, _QUEUE_OFFSET_AT = 0, 12, 20
_LEAST = _QUEUE_OFFSET_AT + _QUEUE_OFFSET.size


def in_logic_queue(data: Body, queue_id: int, delta: int) -> bytes:
    """Return the records of an answer with the queue id and the offsets of their logic queue.

    Bytes that are not a record, and all after them, stay as they are.

    Args:
        delta: the number that is added to the queue offsets.

    Raises:
        FormatError: a queue offset would exceed 63 bits.
    """
    changed, at = bytearray(data), 0
    while at + _LEAST <= len(changed):
        size: int = _QUEUE_ID.unpack_from(changed, at + _SIZE_AT)[0]
        if size < _LEAST:
            break
        offset: int = _QUEUE_OFFSET.unpack_from(changed, at + _QUEUE_OFFSET_AT)[0] + delta
        if not 0 <= offset < 1 << 63:
            raise FormatError(
                f"byte {at}: queue offset {offset} exceeds 63 bits in the logic queue"
            )
        _QUEUE_ID.pack_into(changed, at + _QUEUE_ID_AT, queue_id)
        _QUEUE_OFFSET.pack_into(changed, at + _QUEUE_OFFSET_AT, offset)
        at += size
    return bytes(changed)


def _message(
    data: bytes, end: int, found: Plain, queue: MessageQueue, kind: type[M], longest: int
) -> M:
    """Return a record that ends at `end` as a message.

    Args:
        longest: the maximum length of the decompressed body, in bytes.
    """
    head, body, _, properties_at = found
    properties, sys_flag, fault = data[properties_at:end], head[7], None
    if sys_flag & COMPRESSED:
        body, fault = expand_body(body, sys_flag, longest)
    topic = queue.topic
    if topic.startswith(RETRY_PREFIX):
        topic = decode_properties(properties).get(RETRY_TOPIC) or topic
    return kind(
        topic,
        body,
        queue,
        head[5],  # queue offset
        head[6],  # physical offset
        properties,
        head[4],  # flag
        sys_flag,
        head[8],  # born timestamp
        head[9],  # born host
        head[10],  # store timestamp
        head[11],  # store host
        head[12],  # reconsume times
        fault,
    )


def expand_body(body: bytes, sys_flag: int, longest: int) -> tuple[bytes, str | None]:
    """Return a body decompressed; or as it is, with the reason, if that is impossible."""
    try:
        return decompress(body, sys_flag, max(0, longest)), None
    except FormatError as error:
        return body, str(error)
