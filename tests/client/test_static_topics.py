"""Static topics as clients see them: routes of logic queues, and records in their offsets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.admin import Admin, static_topics
from mqlake.client import (
    ConsumedMessage,
    Consumer,
    ConsumerSettings,
    Message,
    MessageQueue,
    Producer,
)
from mqlake.client.message import ReceivedMessage
from mqlake.client.received import decode_messages, in_logic_queue
from mqlake.client.routes import TopicRoute
from mqlake.errors import FormatError
from mqlake.protocol.bodies.route import BrokerData, TopicQueueMappingInfo, TopicRouteData
from mqlake.protocol.logic_queues.mapping import NO_LEADER
from tests.broker.running import running, to
from tests.broker.static_topics.pairs import A, B, two_brokers
from tests.until import until

LOGICAL = "__syslo__global__"
TOPIC = "Orders"


def info(broker: str, epoch: int, total: int, *queues: int) -> TopicQueueMappingInfo:
    return TopicQueueMappingInfo(
        TOPIC, "__global__", total, broker, epoch, curr_id_map=dict.fromkeys(queues, 0)
    )


def test_the_newest_mapping_decides_which_broker_leads_a_queue() -> None:
    brokers = [BrokerData("c", name, {0: f"{name}:1"}) for name in (A, B)]
    mappings = {A: info(A, 1, 2, 0, 1), B: info(B, 2, 3, 1)}
    data = TopicRouteData([], brokers, topic_queue_mapping_by_broker=mappings)
    route = TopicRoute(TOPIC, data)
    queues = tuple(MessageQueue(TOPIC, LOGICAL, queue_id) for queue_id in range(3))
    assert route.read_queues == route.write_queues == queues
    assert [route.leaders[queue] for queue in queues] == [A, B, NO_LEADER]


def test_a_mapping_with_too_many_queues_is_cut_off() -> None:
    mappings = {A: info(A, 1, 1 << 31, 0)}
    route = TopicRoute(TOPIC, TopicRouteData([], [], topic_queue_mapping_by_broker=mappings))
    assert len(route.read_queues) == 1 << 16


def test_records_get_the_offsets_of_their_logic_queue(tmp_path: Path) -> None:
    async def run() -> bytes:
        async with running(tmp_path) as broker:
            for number in range(3):
                await broker.send(to(TOPIC, queue_id=1), str(number).encode())
            broker.records(TOPIC, 1)
            return b"".join(map(bytes, broker.state.store.get(TOPIC, 1, 0, 10).raw))

    data = asyncio.run(run())
    changed = in_logic_queue(data, 7, 10_000)
    messages = decode_messages(changed, LOGICAL, ReceivedMessage)
    assert [message.queue_offset for message in messages] == [10_000, 10_001, 10_002]
    assert {message.queue for message in messages} == {MessageQueue(TOPIC, LOGICAL, 7)}
    assert [message.body for message in messages] == [b"0", b"1", b"2"]
    # What is no record stays, and a delta that no offset can have is refused.
    assert in_logic_queue(changed[:40] + bytes(30), 7, 0)[40:] == bytes(30)
    for delta in (-1, 1 << 63):
        with pytest.raises(FormatError):
            in_logic_queue(data, 7, delta)


def test_queues_move_while_messages_are_sent_and_read(tmp_path: Path) -> None:
    found: dict[tuple[int, int], bytes] = {}
    again: list[bytes] = []
    settings = ConsumerSettings(consume_from="first", rebalance_interval=0.5)

    async def handle(message: ConsumedMessage) -> None:
        if message.reconsume_times:
            again.append(message.body)
        elif message.body == b"0 0":
            await message.retry_later(1)
            return
        else:
            assert message.queue.broker_name == LOGICAL
            found[message.queue.queue_id, message.queue_offset] = message.body
        await message.ack()

    async def read(consumer: Consumer) -> None:
        async for message in consumer:
            await handle(message)

    async def send_and_move(admin: Admin, producer: Producer) -> dict[tuple[int, int], bytes]:
        sent: dict[tuple[int, int], bytes] = {}
        for turn, brokers in enumerate(([A], [A, B], [B], [A])):
            if turn:
                moved = await static_topics.move(admin, TOPIC, brokers)
                assert {each.broker_name for each in moved} == set(brokers)
            for number in range(6):
                body = f"{turn} {number}".encode()
                result = await producer.send(Message(topic=TOPIC, body=body))
                assert result.queue.broker_name == LOGICAL
                sent[result.queue.queue_id, result.queue_offset] = body
        return sent

    async def run() -> None:
        async with two_brokers(tmp_path) as (a, _):
            names = a.broker.settings.namesrv_addr
            async with Admin(names) as admin:
                made = await static_topics.update(admin, TOPIC, 3, [A])
                assert [each.broker_name for each in made] == [A, A, A]
                async with (
                    Producer(names) as producer,
                    Consumer(names, "g", TOPIC, settings=settings) as consumer,
                ):
                    reading = asyncio.create_task(read(consumer))
                    sent = await send_and_move(admin, producer)
                    assert len(sent) == 24
                    assert len({offset // 10_000 for _, offset in sent}) >= 3
                    first = next(iter(sent))
                    assert sent.pop(first) == b"0 0"
                    await until(lambda: found.keys() >= sent.keys() and bool(again))
                    assert {place: found[place] for place in sent} == sent
                    assert again == [b"0 0"]
                    reading.cancel()

    asyncio.run(run())
