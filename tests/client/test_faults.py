"""Connections that break: every message that was acknowledged is consumed."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

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
from mqlake.client.routes import MAX_QUEUES, TopicRoute
from mqlake.programs.ports import free_port
from mqlake.protocol.bodies.route import BrokerData, QueueData, TopicRouteData
from mqlake.testing import RunningBroker, broker
from tests.client.behaviour.cases import tasks_left
from tests.client.proxy import Proxy, now_and_then
from tests.until import PATIENCE, until

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
    assert await tasks_left({*before, breaking}) == set()


def test_a_broker_that_does_not_answer_costs_no_more_than_the_timeout(
    running: RunningBroker,
) -> None:
    async def run() -> None:
        async with proxy_of(running) as proxy, Producer(running.name_server) as producer:
            await producer.send(Message(topic="orders", body=b"before"))
            proxy.stalled = True
            with pytest.raises(PerhapsStoredError, match=r"no answer .* within 0\.\d+ s"):
                await producer.send(Message(topic="orders", body=b"stalled"), timeout=0.5)
            proxy.stalled = False
            await producer.send(Message(topic="orders", body=b"after"))

    asyncio.run(run())


def test_a_connection_that_only_the_broker_lost_is_replaced(running: RunningBroker) -> None:
    async def run() -> None:
        async with proxy_of(running) as proxy, Producer(running.name_server) as producer:
            await producer.send(Message(topic="orders", body=b"before"))
            async with Consumer(running.name_server, "group", "orders", settings=FIRST) as consumer:
                message = await consumer.receive(60)
                assert message is not None
                await message.ack()
                proxy.half_open_all()
                with pytest.raises(PerhapsStoredError, match="no answer"):
                    await producer.send(Message(topic="orders", body=b"lost"), timeout=2)
                await producer.send(Message(topic="orders", body=b"after"))
                async with asyncio.timeout(PATIENCE):
                    again = await consumer.receive()
                assert again is not None
                assert again.body == b"after"

    asyncio.run(run())


def test_a_cut_off_client_does_not_spin(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measured in rounds of its loop: how long they take is the machine's affair."""

    async def run() -> None:
        selector: Any = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
        select, rounds = selector.select, 0

        def counted(timeout: float | None = None) -> object:
            nonlocal rounds
            rounds += 1
            return select(timeout)

        async with proxy_of(running) as proxy, Producer(running.name_server) as producer:
            await producer.send(Message(topic="orders", body=b"before"))
            async with Consumer(running.name_server, "group", "orders", settings=FIRST) as consumer:
                message = await consumer.receive(60)
                assert message is not None
                await message.ack()
                proxy.stalled = True
                proxy.cut_all()
                monkeypatch.setattr(selector, "select", counted)
                await asyncio.sleep(3)
                assert rounds < 2000  # 150, and tens of thousands of a loop that spins
                proxy.stalled = False
                proxy.cut_all()
                await producer.send(Message(topic="orders", body=b"after"), timeout=PATIENCE)
                again = await consumer.receive(60)
                assert again is not None
                assert again.body == b"after"

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(4))
def test_a_client_recovers_from_a_broker_that_sends_invalid_answers(
    seed: int, running: RunningBroker
) -> None:
    dice, failures = random.Random(seed), list[dict[str, object]]()

    def lie(data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(dice.choice((0, 1, 1, 3, 40))):
            changed[dice.randrange(len(changed))] = dice.choice(
                (0, 0x7F, 0xFF, dice.randrange(256))
            )
        return bytes(changed[: dice.choice((len(changed),) * 9 + (dice.randrange(len(changed)),))])

    async def send(producer: Producer) -> None:
        for number in range(30):
            message = Message(topic="orders", body=b"%d" % number)
            with suppress(ClientError):
                await producer.send(message, timeout=0.2)

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, said: failures.append(said))
        async with proxy_of(running) as proxy, Producer(running.name_server) as producer:
            await producer.send_many([Message(topic="orders", body=bytes(99))] * 200)
            proxy.lie = lie
            async with Consumer(running.name_server, "group", "orders", settings=FIRST) as consumer:
                working = asyncio.create_task(consumer.run(lambda message: message.ack()))
                await asyncio.gather(*(send(producer) for _ in range(4)))
                proxy.lie = None
                proxy.cut_all()
                consumer_of_the_end = Consumer(running.name_server, "end", "orders", settings=FIRST)
                async with consumer_of_the_end as last:
                    await producer.send(Message(topic="orders", body=b"the end"), timeout=PATIENCE)
                    async with asyncio.timeout(PATIENCE):
                        async for message in last:
                            if message.body == b"the end":
                                break
            await working

    asyncio.run(run())
    assert not failures


def test_a_route_of_two_billion_queues_is_not_believed() -> None:
    rows = [QueueData(name, 2**31 - 1, 2**31 - 1, 6) for name in "ab"]
    brokers = [BrokerData("c", name, {0: "a:1"}) for name in "ab"]
    data = TopicRouteData(queue_datas=rows, broker_datas=brokers)
    assert len(TopicRoute("t", data).read_queues) == MAX_QUEUES
    data.order_topic_conf = "a:2000000000;b:x;" * 9
    assert len(TopicRoute("t", data).write_queues) == MAX_QUEUES
    data.order_topic_conf = f"a:{'9' * 5000};b:3"
    assert [queue.broker_name for queue in TopicRoute("t", data).write_queues] == ["b"] * 3


def test_without_a_name_server_there_is_no_route() -> None:
    async def run() -> None:
        names = f"127.0.0.1:{free_port()}"
        async with Producer(names) as producer:
            with pytest.raises(NoRouteError, match=r"no name server answers: .*refused"):
                await producer.send(Message(topic="orders", body=b""))
        async with Consumer(names, "group", "orders") as consumer:
            assert await consumer.receive(0.1) is None
            assert not consumer.queues

    asyncio.run(run())
