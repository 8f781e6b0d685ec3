"""Tasks that are sent, received, acknowledged, redelivered and delayed."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from taskiq import AckableMessage, BrokerMessage

from mqlake.client import ClosedError
from mqlake.client.cluster import Cluster
from mqlake.errors import FormatError, MqlakeError
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.pop import PollingInfoAnswerHeader, PollingInfoHeader
from mqlake.taskiq import RocketmqBroker
from mqlake.testing import RunningBroker
from mqlake.testing import broker as run_broker
from tests.kombu.leases import FACTOR, long_leases
from tests.until import until

PATIENCE = 60.0


@asynccontextmanager
async def started(
    running: RunningBroker, topic: str, **options: float
) -> AsyncIterator[RocketmqBroker]:
    broker = RocketmqBroker(running.name_server, topic=topic, group=f"{topic}-group", **options)
    await broker.startup()
    try:
        yield broker
    finally:
        await broker.shutdown()


def task(body: bytes, **labels: object) -> BrokerMessage:
    return BrokerMessage(task_id=body.decode(), task_name="work", message=body, labels=labels)


async def receive(tasks: AsyncGenerator[AckableMessage, None]) -> AckableMessage:
    async with asyncio.timeout(PATIENCE):
        return await anext(tasks)


async def acknowledge(message: AckableMessage) -> bytes:
    await message.ack()
    return message.data


async def waiting_pops(running: RunningBroker, topic: str) -> int:
    """Return how many pops of a topic's tasks wait at the broker."""
    header = PollingInfoHeader(consumer_group=f"{topic}-group", topic=topic, queue_id=-1)
    async with Cluster(running.name_server) as cluster:
        answer = await cluster.ask(running.address, RequestCode.POLLING_INFO, header)
    return answer.header(PollingInfoAnswerHeader).polling_num


async def are_answered(running: RunningBroker, topic: str) -> bool:
    """Return whether no pop waits any more."""
    return not await waiting_pops(running, topic)


def test_a_task_is_received_once(broker: RunningBroker) -> None:
    async def run() -> None:
        async with started(broker, "once") as sender, started(broker, "once") as worker:
            wanted = {b"%d" % number for number in range(20)}
            for body in sorted(wanted):
                await sender.kick(task(body))
            async with aclosing(worker.listen()) as tasks:
                found = [await acknowledge(await receive(tasks)) for _ in wanted]
                assert sorted(found) == sorted(wanted)
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(2):
                        await anext(tasks)

    asyncio.run(run())


def test_two_workers_share_the_tasks(broker: RunningBroker) -> None:
    async def work(worker: RocketmqBroker, found: list[bytes]) -> None:
        async with aclosing(worker.listen()) as tasks:
            async for message in tasks:
                found.append(await acknowledge(message))
                await asyncio.sleep(0.02)

    async def run() -> None:
        first: list[bytes] = []
        second: list[bytes] = []
        async with started(broker, "shared") as one, started(broker, "shared") as other:
            working = [
                asyncio.create_task(work(one, first)),
                asyncio.create_task(work(other, second)),
            ]
            number = 0
            async with asyncio.timeout(PATIENCE):
                while number < 40 or not (first and second):  # one may begin later than the other
                    await one.kick(task(b"%d" % number))
                    number += 1
                await until(lambda: len({*first, *second}) == number)
            for each in working:
                each.cancel()
            await asyncio.gather(*working, return_exceptions=True)
        assert len({*first, *second}) == number

    asyncio.run(run())


def test_a_task_is_redelivered_unless_it_is_acknowledged(broker: RunningBroker) -> None:
    async def run() -> None:
        async with started(broker, "again", visibility_timeout=2) as sender:
            await sender.kick(task(b"one"))
            # A worker that stops gives its task back; it need not time out.
            async with (
                started(broker, "again", visibility_timeout=600) as stopped,
                aclosing(stopped.listen()) as tasks,
            ):
                assert (await receive(tasks)).data == b"one"
            async with aclosing(sender.listen()) as tasks:
                message = await receive(tasks)
                assert message.data == b"one"
                await message.ack()
                await message.ack()  # a second time is no error

    asyncio.run(run())


def test_a_long_task_is_not_given_to_another_worker() -> None:
    async def run(broker: RunningBroker, extended: Counter[str]) -> None:
        async with (
            started(broker, "long", visibility_timeout=1) as busy,
            started(broker, "long", visibility_timeout=1) as idle,
        ):
            await busy.kick(task(b"one"))
            async with aclosing(busy.listen()) as mine, aclosing(idle.listen()) as others:
                message = await receive(mine)
                other = asyncio.ensure_future(anext(others))
                for _ in range(3):
                    before = extended.total()
                    await until(lambda before=before: extended.total() > before)
                    broker.advance(0.8 * FACTOR)
                await asyncio.wait([other], timeout=1)
                assert not other.done()
                await message.ack()
                other.cancel()
                await asyncio.gather(other, return_exceptions=True)

    # Of its own: its clock is advanced.
    with run_broker() as broker, long_leases() as extended:
        asyncio.run(run(broker, extended))


def test_a_task_that_nobody_can_acknowledge_any_more_is_redelivered(broker: RunningBroker) -> None:
    async def run() -> None:
        async with started(broker, "dropped", visibility_timeout=1) as worker:
            await worker.kick(task(b"one"))
            async with aclosing(worker.listen()) as tasks:
                message = await receive(tasks)
                del message
                assert await acknowledge(await receive(tasks)) == b"one"
            assert not worker._window.held

    asyncio.run(run())


def test_a_pop_that_is_cancelled_keeps_no_task_back(broker: RunningBroker) -> None:
    async def run() -> None:
        async with started(broker, "cancelled", visibility_timeout=600) as stopped:
            async with aclosing(stopped.listen()) as tasks:
                waiting = asyncio.ensure_future(anext(tasks))
                await until(lambda: waiting_pops(broker, "cancelled"))
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
            # Its last pop still waits at the broker, which answers it with the task.
            await stopped.kick(task(b"one"))
            await until(lambda: are_answered(broker, "cancelled"))
        async with started(broker, "cancelled") as worker, aclosing(worker.listen()) as tasks:
            assert await acknowledge(await receive(tasks)) == b"one"

    asyncio.run(run())


def test_a_delayed_task_comes_late(broker: RunningBroker) -> None:
    async def run() -> None:
        async with started(broker, "late") as worker:
            arrived: dict[bytes, float] = {}
            began = time.monotonic()
            await worker.kick(task(b"late", delay=2))
            await worker.kick(task(b"soon"))
            async with aclosing(worker.listen()) as tasks:
                for _ in range(2):
                    body = await acknowledge(await receive(tasks))
                    arrived[body] = time.monotonic() - began
            assert arrived.keys() == {b"soon", b"late"}
            # The broker's timer is exact to a second.
            assert arrived[b"late"] > 0.9

    asyncio.run(run())


def test_a_broker_that_is_not_started_says_so(broker: RunningBroker) -> None:
    async def run() -> None:
        with pytest.raises(ClosedError, match="startup"):
            await RocketmqBroker(broker.name_server).kick(task(b"one"))
        with pytest.raises(MqlakeError):
            await RocketmqBroker("127.0.0.1:1").startup()

    asyncio.run(run())


@pytest.mark.parametrize(
    "options", [{"topic": "no topic"}, {"prefetch": 0}, {"visibility_timeout": 0.5}, {"queues": 0}]
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(FormatError):
        RocketmqBroker("127.0.0.1:9876", **options)
