"""Answers to pulls with bytes that are no record: nothing behind these is skipped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import msgspec
import pytest

from mqlake.arrow import SETTINGS, ArrowConsumer
from mqlake.client import Consumer, ConsumerSettings, Message, MessageQueue, Producer, PullConsumer
from mqlake.client.consumer.broker_calls import BrokerCalls, Pulled
from mqlake.formats.record import MAGIC_AT
from mqlake.protocol.headers.pull import PullHeader
from mqlake.testing import RunningBroker, broker
from tests.client.servers import wait_for_dispatch
from tests.until import PATIENCE

COUNT, DAMAGED = 10, 6
FIRST = ConsumerSettings(consume_from="first", handover=0.1)
FIRST_COLUMNS = msgspec.structs.replace(SETTINGS, consume_from="first", handover=0.1)
Damage = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as found:
        yield found


def cut(data: bytes) -> bytes:
    """Without its last byte."""
    return data[:-1]


def unknown(data: bytes) -> bytes:
    """With a record that has an unknown magic number, and good ones behind it."""
    at = 0
    for _ in range(DAMAGED):
        at += int.from_bytes(data[at : at + 4], "big")
    return data[: at + MAGIC_AT] + b"????" + data[at + MAGIC_AT + 4 :]


def damaged_answers(patch: pytest.MonkeyPatch, damage: Damage, times: int) -> None:
    """Damage the first answers that hold all messages."""
    pull, left = BrokerCalls.pull, times

    async def damaged(calls: BrokerCalls, queue: MessageQueue, header: PullHeader) -> Pulled:
        nonlocal left
        found = await pull(calls, queue, header)
        if left and header.queue_offset == 0 and found.data:
            left -= 1
            return found._replace(data=damage(bytes(found.data)))
        return found

    patch.setattr(BrokerCalls, "pull", damaged)


async def send(running: RunningBroker, topic: str) -> None:
    async with Producer(running.name_server) as producer:
        queue = (await producer.queues(topic))[0]
        await producer.send_batch(
            [Message(topic=topic, body=b"%d" % number) for number in range(COUNT)], queue=queue
        )
    # The first answer has to hold all of them.
    await wait_for_dispatch(running.address, topic, {queue.queue_id: COUNT})


async def consume(names: str, topic: str, group: str) -> list[int]:
    got: list[int] = []
    async with Consumer(names, group, topic, settings=FIRST) as consumer:
        async with asyncio.timeout(PATIENCE):
            async for message in consumer:
                got.append(int(message.body))
                await message.ack()
                if len(set(got)) == COUNT:
                    break
    return got


async def consume_columns(names: str, topic: str, group: str) -> list[int]:
    got: list[int] = []
    async with ArrowConsumer(names, group, topic, settings=FIRST_COLUMNS) as consumer:
        async with asyncio.timeout(PATIENCE):
            async for batch in consumer.arrow_batches():
                got += map(int, batch.records["body"].to_pylist())
                await batch.ack()
                if len(set(got)) == COUNT:
                    break
    return got


@pytest.mark.parametrize("damage", [cut, unknown])
@pytest.mark.parametrize("consume", [consume, consume_columns])
def test_messages_after_a_damaged_one_are_pulled_again(
    running: RunningBroker,
    monkeypatch: pytest.MonkeyPatch,
    damage: Damage,
    consume: Callable[..., asyncio.Future[list[int]]],
) -> None:
    topic = f"{consume.__name__}-{damage.__name__}"
    damaged_answers(monkeypatch, damage, times=1)

    async def main() -> list[int]:
        await send(running, topic)
        return await consume(running.name_server, topic, f"{topic}-group")

    assert asyncio.run(main()) == list(range(COUNT)), "each once, and in its order"


def test_no_offset_is_committed_past_permanent_damage(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group = "Stays", "stays"

    async def decode_fails(calls: BrokerCalls, queue: MessageQueue, header: PullHeader) -> Pulled:
        found = await pull(calls, queue, header)
        if queue.topic != topic or not found.data:
            return found
        data = bytes(found.data)
        return found._replace(data=unknown(data) if header.queue_offset == 0 else b"????" * 40)

    pull = BrokerCalls.pull
    monkeypatch.setattr(BrokerCalls, "pull", decode_fails)

    async def main() -> None:
        names = running.name_server
        await send(running, topic)
        async with Consumer(names, group, topic, settings=FIRST) as consumer:
            for number in range(DAMAGED):
                message = await consumer.receive(PATIENCE)
                assert message is not None
                assert int(message.body) == number
                await message.ack()
            assert await consumer.receive(2) is None
        async with PullConsumer(names, group) as reader:
            queue = (await reader.queues_of(topic))[0]
            assert await reader.committed(queue) == DAMAGED

    asyncio.run(main())
    assert "cannot be read now: byte 0: no record starts here" in caplog.text
