"""A consumer that has started knows where it begins: it receives what is sent from then on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from mqlake.client import Consumer, Message, MessageQueue, Producer
from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.errors import MqlakeError
from mqlake.testing import RunningBroker, broker
from tests.client.servers import create_topic
from tests.until import PATIENCE

QUEUES = 4
ROUNDS = 20


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as found:
        yield found


@pytest.fixture(autouse=True)
def without_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broker and log are so old that a new group does not begin at 0."""

    async def none(calls: BrokerCalls, queue: MessageQueue) -> None:
        pass

    monkeypatch.setattr(BrokerCalls, "offset_of_group", none)


async def received(running: RunningBroker, topic: str) -> bytes | None:
    """Start the consumer of a new group; return what it receives of what is sent then."""
    names = running.name_server
    await create_topic(running.address, topic, QUEUES)
    async with asyncio.timeout(PATIENCE), Producer(names) as producer:
        await producer.send(Message(topic=topic, body=b"before"))
        async with Consumer(names, f"{topic}-group", topic) as consumer:
            await producer.send(Message(topic=topic, body=b"after"))
            message = await consumer.receive()
    return message.body if message else None


def test_a_message_that_is_sent_after_the_start_arrives(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_of = BrokerCalls.end_of

    async def slow(calls: BrokerCalls, queue: MessageQueue) -> int:
        for _ in range(ROUNDS):
            await end_of(calls, queue)
        return await end_of(calls, queue)

    monkeypatch.setattr(BrokerCalls, "end_of", slow)
    assert asyncio.run(received(running, "Awaited")) == b"after"


def test_a_start_ends_although_a_broker_does_not_tell_the_ends_of_its_queues(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_of, failed = BrokerCalls.end_of, set[MessageQueue]()

    async def failing(calls: BrokerCalls, queue: MessageQueue) -> int:
        if queue not in failed:
            failed.add(queue)
            raise MqlakeError("not now")
        return await end_of(calls, queue)

    async def run() -> int:
        await create_topic(running.address, "Failing", QUEUES)
        async with Consumer(running.name_server, "failing", "Failing"):
            return len(failed)

    monkeypatch.setattr(BrokerCalls, "end_of", failing)
    assert asyncio.run(run()) == QUEUES
