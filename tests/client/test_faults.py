"""Connections that break: every message that was acknowledged is consumed."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from mqlake.client import (
    ClientError,
    ConsumedMessage,
    Consumer,
    ConsumerSettings,
    Message,
    NoRouteError,
    PerhapsStoredError,
    Producer,
    Tries,
)
from mqlake.programs.ports import free_port
from mqlake.testing import RunningBroker, broker
from tests.client.behaviour.cases import until
from tests.client.proxy import Proxy, now_and_then

PROXY = "127.0.0.2"
FIRST = ConsumerSettings(consume_from="first", handover=0.1, commit_interval=0.2)


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    """A broker that tells clients the address of a proxy."""
    with broker(brokerIP1=PROXY, bindAddress="127.0.0.1") as found:
        yield found


def proxy_of(running: RunningBroker) -> Proxy:
    port = running.address.rpartition(":")[2]
    return Proxy(f"{PROXY}:{port}", f"127.0.0.1:{port}")


@pytest.mark.parametrize("seed", range(3))
def test_nothing_acknowledged_is_lost_while_connections_break(
    seed: int, running: RunningBroker
) -> None:
    asyncio.run(_send_and_receive(running, random.Random(seed)))


async def _send_and_receive(running: RunningBroker, dice: random.Random) -> None:
    before = asyncio.all_tasks()
    names, got, acknowledged = running.name_server, Counter[str](), set[str]()

    async def handle(message: ConsumedMessage) -> None:
        if dice.random() < 0.02:
            await message.retry_later(1)
        else:
            got[message.message_id] += 1

    async def send(producer: Producer, number: int) -> None:
        while True:
            try:
                sent = await producer.send(Message(topic="orders", body=b"%d" % number * 50))
            except ClientError:
                await asyncio.sleep(0.05)
            else:
                acknowledged.add(sent.message_id)
                return

    async with proxy_of(running) as proxy, Producer(names, tries=Tries(1)) as producer:
        await send(producer, 0)
        async with Consumer(names, "group", "orders", settings=FIRST) as consumer:
            working = asyncio.create_task(consumer.run(handle, concurrency=4))
            breaking = asyncio.create_task(now_and_then(proxy.cut_all, dice, 0.05, 0.4))
            for start in range(0, 400, 20):
                await asyncio.gather(*(send(producer, start + number) for number in range(20)))
                await asyncio.sleep(0.05)
            breaking.cancel()
            await until(lambda: acknowledged <= got.keys())
        await working
        assert proxy.cuts > 2
    await asyncio.sleep(0.1)
    assert asyncio.all_tasks() - before - {breaking} == set()


def test_a_broker_that_does_not_answer_costs_no_more_than_the_timeout(
    running: RunningBroker,
) -> None:
    async def run() -> None:
        async with proxy_of(running) as proxy, Producer(running.name_server) as producer:
            await producer.send(Message(topic="orders", body=b"before"))
            proxy.stalled = True
            begun = time.monotonic()
            with pytest.raises(PerhapsStoredError, match="no answer"):
                await producer.send(Message(topic="orders", body=b"stalled"), timeout=0.5)
            assert time.monotonic() - begun < 5
            proxy.stalled = False
            await producer.send(Message(topic="orders", body=b"after"))

    asyncio.run(run())


def test_a_cut_off_client_does_not_spin(running: RunningBroker) -> None:
    async def run() -> None:
        async with proxy_of(running) as proxy, Producer(running.name_server) as producer:
            await producer.send(Message(topic="orders", body=b"before"))
            async with Consumer(running.name_server, "group", "orders", settings=FIRST) as consumer:
                message = await consumer.receive(60)
                assert message is not None
                await message.ack()
                proxy.stalled = True
                proxy.cut_all()
                used, begun = time.thread_time(), time.monotonic()
                await asyncio.sleep(3)
                share = (time.thread_time() - used) / (time.monotonic() - begun)
                assert share < 0.1  # the bar is 0.01, of which the proxy takes some
                proxy.stalled = False
                proxy.cut_all()
                await producer.send(Message(topic="orders", body=b"after"), timeout=20)
                again = await consumer.receive(60)
                assert again is not None
                assert again.body == b"after"

    asyncio.run(run())


def test_without_a_name_server_there_is_no_route() -> None:
    async def run() -> None:
        names = f"127.0.0.1:{free_port()}"
        async with Producer(names) as producer:
            with pytest.raises(NoRouteError, match="no name server of"):
                await producer.send(Message(topic="orders", body=b""))
        async with Consumer(names, "group", "orders") as consumer:
            assert await consumer.receive(0.1) is None
            assert not consumer.queues

    asyncio.run(run())
