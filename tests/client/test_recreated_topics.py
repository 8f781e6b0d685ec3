"""A topic is deleted and created again while consumers of every kind run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from mqlake.admin import Admin, topics
from mqlake.client import (
    ConsumedMessage,
    Consumer,
    ConsumerSettings,
    Message,
    Producer,
    PullConsumer,
    SimpleConsumer,
)
from mqlake.errors import MqlakeError
from mqlake.formats.config.topics import Topic
from mqlake.testing import RunningBroker, broker

TOPIC, QUEUES = "t", 2
_PATIENCE = 120.0


@asynccontextmanager
async def pushed(names: str, seen: list[bytes], *, in_order: bool) -> AsyncIterator[None]:
    settings = ConsumerSettings(consume_from="first", in_order=in_order)

    async def handle(message: ConsumedMessage) -> None:
        seen.append(message.body)

    async with Consumer(names, "g", TOPIC, settings=settings) as consumer:
        running = asyncio.create_task(consumer.run(handle))
        yield
    await running


@asynccontextmanager
async def polled(names: str, seen: list[bytes]) -> AsyncIterator[None]:
    async with PullConsumer(names, "g") as consumer:
        consumer.assign(await consumer.queues_of(TOPIC))

        async def poll() -> None:
            while True:
                seen.extend([message.body for message in await consumer.poll(1.0)])
                try:
                    await consumer.commit()
                except MqlakeError:  # The topic does not exist now.
                    await asyncio.sleep(0.05)

        running = asyncio.create_task(poll())
        try:
            yield
        finally:
            running.cancel()


@asynccontextmanager
async def popped(names: str, seen: list[bytes]) -> AsyncIterator[None]:
    async with SimpleConsumer(names, "g", TOPIC, is_from_first=True) as consumer:

        async def pop() -> None:
            while True:
                try:
                    for message in await consumer.receive(wait=1.0):
                        seen.append(message.body)
                        await consumer.ack(message)
                except MqlakeError:
                    await asyncio.sleep(0.05)

        running = asyncio.create_task(pop())
        try:
            yield
        finally:
            running.cancel()


KINDS: dict[str, Callable[[str, list[bytes]], AbstractAsyncContextManager[None]]] = {
    "push": lambda names, seen: pushed(names, seen, in_order=False),
    "in order": lambda names, seen: pushed(names, seen, in_order=True),
    "pull": polled,
    "pop": popped,
}


async def send(names: str, prefix: str, count: int) -> set[bytes]:
    bodies = {f"{prefix}{number}".encode() for number in range(count)}
    async with Producer(names) as producer:
        await producer.send_many([Message(topic=TOPIC, body=body) for body in sorted(bodies)])
    return bodies


async def create(running: RunningBroker) -> None:
    async with Admin(running.name_server) as admin:
        topic = Topic(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        await topics.update(admin, topic, None, running.address)


async def until(seen: list[bytes], wanted: set[bytes]) -> None:
    async with asyncio.timeout(_PATIENCE):
        while not wanted <= set(seen):  # noqa: ASYNC110 (the consumers of four kinds)
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("new", [7, 60])
@pytest.mark.parametrize("kind", KINDS)
def test_running_consumers_get_all_messages_of_the_new_topic(
    kind: str, new: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "mqlake.client")
    with broker() as running:

        async def run() -> None:
            seen: list[bytes] = []
            names = running.name_server
            await create(running)
            old = await send(names, "old", 40)
            async with KINDS[kind](names, seen):
                await until(seen, old)
                async with Admin(names) as admin:
                    await topics.delete(admin, TOPIC, "DefaultCluster")
                await create(running)
                await until(seen, await send(names, "new", new))
                await until(seen, await send(names, "later", 5))

        asyncio.run(run())
