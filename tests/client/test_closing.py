"""Producers and consumers that are closed in the middle of something."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from threading import Thread

import pytest

from mqlake.client import (
    Consumer,
    Message,
    MessageQueue,
    Producer,
    PullConsumer,
    ReceivedMessage,
    TransactionState,
)
from mqlake.client.blocking import Consumer as BlockingConsumer
from mqlake.errors import FormatError
from mqlake.testing import RunningBroker, broker
from tests.client.behaviour.cases import FIRST, collect
from tests.until import PATIENCE, until


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as found:
        yield found


async def _sent(producer: Producer, topic: str, count: int) -> MessageQueue:
    sent = [
        await producer.send(Message(topic=topic, body=b"%d" % n, sharding_key="one"))
        for n in range(count)
    ]
    return sent[0].queue


def test_a_close_that_is_cancelled_still_leaves_the_group(running: RunningBroker) -> None:
    async def run() -> None:
        names = running.name_server
        async with Producer(names) as producer:  # shares its connections with the consumer
            queue = await _sent(producer, "Cancelled", 3)
            consumer = Consumer(names, "cancelled", "Cancelled", settings=FIRST)
            await consumer.start()
            handling, may_end = asyncio.Event(), asyncio.Event()

            async def handle(message: ReceivedMessage) -> None:
                handling.set()
                await may_end.wait()

            working = asyncio.create_task(consumer.run(handle, concurrency=1))
            await handling.wait()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.close(), 0.01)
            may_end.set()
            await consumer.close()  # the same closing
            await working
            async with PullConsumer(names, "cancelled") as reader:
                await reader.queues_of("Cancelled")
                assert await reader.committed(queue) == 1
            async with Consumer(names, "cancelled", "Cancelled", settings=FIRST) as other:
                assert [m.body for m in await collect(other, 2)] == [b"1", b"2"]

    asyncio.run(run())


def test_a_listener_may_close_its_consumer(running: RunningBroker) -> None:
    async def run() -> None:
        names = running.name_server
        consumer: Consumer

        async def revoked(queues: set[MessageQueue]) -> None:
            await consumer.close()

        async with Producer(names) as producer:
            await _sent(producer, "Listened", 1)
            consumer = Consumer(names, "listened", "Listened", settings=FIRST, on_revoked=revoked)
            async with consumer:
                await collect(consumer, 1)
                other = Consumer(names, "listened", "Listened", settings=FIRST)
                async with other, asyncio.timeout(PATIENCE):
                    # The other one takes queues, and the listener hears of it.
                    while await consumer.receive() is not None:
                        pass
                    await until(lambda: len(other.queues) == 5)

    asyncio.run(run())


def test_a_second_thread_waits_until_a_consumer_is_closed(running: RunningBroker) -> None:
    names = running.name_server

    async def send() -> MessageQueue:
        async with Producer(names) as producer:
            return await _sent(producer, "Threads", 1)

    queue = asyncio.run(send())
    with BlockingConsumer(names, "threads", "Threads", settings=FIRST) as consumer:
        closing = Thread(target=consumer.close)
        for message in consumer:
            consumer.ack(message)
            closing.start()
    closing.join()

    async def committed() -> int | None:
        async with PullConsumer(names, "threads") as reader:
            await reader.queues_of("Threads")
            return await reader.committed(queue)

    assert asyncio.run(committed()) == 1


def test_a_loop_ends_if_its_consumer_was_closed_between_two_messages(
    running: RunningBroker,
) -> None:
    async def send() -> None:
        async with Producer(running.name_server) as producer:
            await _sent(producer, "Between", 2)

    asyncio.run(send())
    received = 0
    with BlockingConsumer(running.name_server, "between", "Between", settings=FIRST) as consumer:
        for _ in consumer:
            received += 1
            consumer.close()
    assert received == 1


def test_a_chosen_queue_needs_no_message_before(running: RunningBroker) -> None:
    async def run() -> None:
        async with Producer(running.name_server) as producer:
            queue = await _sent(producer, "Chosen", 1)
        async with Producer(running.name_server, instance="fresh") as producer:
            sent = await producer.send(Message(topic="Chosen", body=b"x"), queue=queue)
            assert (sent.queue, sent.queue_offset) == (queue, 1)

    asyncio.run(run())


def test_a_transaction_has_no_delay_and_is_checked_by_who_can(running: RunningBroker) -> None:
    async def check(half: ReceivedMessage) -> TransactionState:
        return TransactionState.COMMIT

    async def run() -> None:
        names = running.name_server
        async with Producer(names, group="checked", check=check) as producer:
            with pytest.raises(FormatError, match="cannot be delayed"):
                await producer.transaction(Message(topic="Checked", body=b"", delay=5))
            with pytest.raises(FormatError, match="cannot be delayed"):
                await producer.transaction(
                    Message(topic="Checked", body=b"", properties={"DELAY": "3"})
                )
            async with Producer(names, group="checked") as other:
                assert (producer.can_check, other.can_check) == (True, False)

    asyncio.run(run())
