"""Large requests are looked at before Protocol Buffers parses them."""

from __future__ import annotations

import asyncio
import random

import pytest
from google.protobuf.message import Message as ProtobufMessage

from mqlake.grpc.messages import (
    Message,
    MessageQueue,
    ReceiveMessageRequest,
    SendMessageRequest,
    SystemProperties,
)
from mqlake.grpc.parsing import LARGE, MOST_FIELDS, LargeMessages, parse, parse_at_once
from mqlake.grpc.status import GrpcError, GrpcStatus


async def parse_large(kind: type[ProtobufMessage], data: bytes) -> ProtobufMessage:
    return (await LargeMessages().parse(kind, data))[0]


def test_a_large_body_is_one_field() -> None:
    request = SendMessageRequest(messages=[Message(body=b"\x0a\x00" * 1_000_000)])
    data = request.SerializeToString()
    assert asyncio.run(parse_large(SendMessageRequest, data)) == request


def test_a_large_batch_is_parsed() -> None:
    properties = SystemProperties(tag="t", keys=["a", "b"], message_id="1", queue_id=1)
    message = Message(user_properties={"x": "y"}, system_properties=properties, body=b"body")
    request = SendMessageRequest(messages=[message] * 2000)
    data = request.SerializeToString()
    assert asyncio.run(parse_large(SendMessageRequest, data)) == request


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x00" * (MOST_FIELDS + 1),
        b"\x0a\x04\x1a\x02\x08\x01" * (MOST_FIELDS // 3 + 1),
        b"\x78\x01" * (MOST_FIELDS + 1),
    ],
    ids=["empty messages", "messages in messages", "unknown numbers"],
)
def test_more_fields_than_allowed_are_refused(data: bytes) -> None:
    with pytest.raises(GrpcError) as caught:
        asyncio.run(parse_large(SendMessageRequest, data))
    assert caught.value.status is GrpcStatus.RESOURCE_EXHAUSTED


def test_packed_numbers_count() -> None:
    queue = MessageQueue(accept_message_types=[1] * (MOST_FIELDS + 1))
    data = ReceiveMessageRequest(message_queue=queue).SerializeToString()
    with pytest.raises(GrpcError, match="fields"):
        asyncio.run(parse_large(ReceiveMessageRequest, data))


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",
        b"\x0a\xff\xff\xff\xff\x7f",
        b"\x0a\x05x",
        b"\xff" * 30,
        b"\x0f" * 9,
        b"\x0a\x02\x1a\x02" + bytes(2),
        b"\x0a\x02\x78\x80\x01\x00",
    ],
)
def test_what_is_no_message_is_an_error(data: bytes) -> None:
    with pytest.raises(GrpcError) as caught:
        asyncio.run(parse_large(SendMessageRequest, data))
    assert caught.value.status is GrpcStatus.INTERNAL
    with pytest.raises(GrpcError):
        parse(SendMessageRequest, data)


def test_what_is_in_a_group_does_not_hide_fields() -> None:
    """Protocol Buffers skips what is in an unknown group, whatever it would be elsewhere."""
    hidden = b"\xa3\x06\x0a\x7f\xa4\x06" + b"\x0a\x00" * 100_000
    with pytest.raises(GrpcError) as caught:
        asyncio.run(parse_large(SendMessageRequest, hidden))
    assert caught.value.status is GrpcStatus.INTERNAL


def test_many_fields_are_not_parsed_at_once() -> None:
    few = SendMessageRequest(messages=[Message(body=bytes(9_000))]).SerializeToString()
    many = SendMessageRequest(messages=[Message()] * 4_500).SerializeToString()
    assert len(many) == 9_000
    assert parse_at_once(SendMessageRequest, few) is not None
    assert parse_at_once(SendMessageRequest, many) is None
    assert parse_at_once(SendMessageRequest, bytes(LARGE + 1)) is None


def fields_of(message: ProtobufMessage) -> int:
    """Return how many fields a message was encoded with, those of its messages included."""
    count = 0
    for field, value in message.ListFields():
        parts = [value]
        if field.is_repeated:
            is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
            parts = [("", "")] * len(value) if is_map else list(value)
        for part in parts:
            count += 1
            if isinstance(part, tuple):
                count += 2
            elif isinstance(part, ProtobufMessage):
                count += fields_of(part)
    return count


def drawn_message(draw: random.Random) -> Message:
    """Return a message whose tags and lengths have one byte or two."""
    properties = SystemProperties(
        message_id="i" * draw.choice((1, 34, 300)),
        keys=["k" * draw.choice((1, 127, 128)) for _ in range(draw.randrange(4))],
        queue_offset=draw.choice((1, 1 << 40)),
        lite_topic="l" * draw.randrange(1, 3),  # Its tag has two bytes.
    )
    user = {f"n{number}": "v" * draw.randrange(1, 200) for number in range(draw.randrange(4))}
    body = bytes(draw.choice((1, 127, 128, 1000)))
    return Message(user_properties=user, system_properties=properties, body=body)


@pytest.mark.parametrize("seed", range(20))
def test_the_fields_of_a_request_are_counted(seed: int) -> None:
    draw = random.Random(seed)
    messages = [drawn_message(draw) for _ in range(8)]
    while (size := SendMessageRequest(messages=messages).ByteSize()) > LARGE:
        messages.pop()
    request = SendMessageRequest(messages=messages)
    assert size > 2048  # Smaller ones are not looked at.
    parsed = parse_at_once(SendMessageRequest, request.SerializeToString())
    assert parsed is not None
    found, cost = parsed
    assert found == request
    assert cost - size == 48 * fields_of(request)
