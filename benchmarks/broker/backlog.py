"""Leave a backlog in a broker, mqlake's or Java's, for a group that begins at the first message."""

from __future__ import annotations

import asyncio
import time

from benchmarks.broker.load import QUEUES
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.message_batch import encode_batch
from mqlake.protocol.bodies.groups import encode_group
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Body, request
from mqlake.protocol.header import Header
from mqlake.protocol.headers.offsets import UpdateConsumerOffsetHeader
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.remoting.client import RemotingClient

A_BATCH = 32
_IN_FLIGHT = 8
_BODIES = 512
"""Batches that are encoded, and sent again and again."""
_PATIENCE = 30.0


def leave(address: str, topic: str, group: str, messages: int, size: int) -> None:
    """Put messages of so many bytes into all queues by turns; set the group's offsets to 0."""
    asyncio.run(_leave(address, topic, group, messages, size))


async def _leave(address: str, topic: str, group: str, messages: int, size: int) -> None:
    client = RemotingClient()

    async def ask(code: int, header: Header | None, body: Body = b"") -> None:
        await client.call(address, request(code, header, body), _PATIENCE)

    bodies = [_body(number * A_BATCH, size) for number in range(_BODIES)]
    numbers = iter(range(messages // A_BATCH))

    async def send() -> None:
        for number in numbers:
            header = _header(topic, number % QUEUES)
            await ask(RequestCode.SEND_BATCH_MESSAGE, header, bodies[number % _BODIES])

    try:
        await asyncio.gather(*(send() for _ in range(_IN_FLIGHT)))
        made = encode_group(SubscriptionGroup(group_name=group))
        await ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, made)
        for queue_id in range(QUEUES):
            header = UpdateConsumerOffsetHeader(
                consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=0
            )
            await ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)
    finally:
        await client.close()


def _body(first: int, size: int) -> bytes:
    return encode_batch(
        (0, bytes(size), _properties(number)) for number in range(first, first + A_BATCH)
    )


def _properties(number: int) -> bytes:
    return f"KEYS\x01{number}\x02UNIQ_KEY\x017F0000010A2B18B4AAC2{number:012X}\x02".encode()


def _header(topic: str, queue_id: int) -> SendMessageHeaderV2:
    return SendMessageHeaderV2(
        producer_group="backlog",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=QUEUES,
        queue_id=queue_id,
        sys_flag=0,
        born_timestamp=time.time_ns() // 1_000_000,
        flag=0,
        properties="UNIQ_KEY\x017F0000010A2B18B4AAC2000000000000\x02",
        reconsume_times=0,
        unit_mode=False,
        batch=True,
    )
