"""Consumers of Arrow batches, with mqlake's broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from mqlake.arrow import SETTINGS, ArrowBatch, ArrowConsumer
from mqlake.client import ClientError, Consumer, ConsumerSettings, Message, Producer
from mqlake.testing import RunningBroker, broker

PATIENCE = 60
FIRST = msgspec.structs.replace(SETTINGS, consume_from="first", handover=0.1)
IN_ORDER = msgspec.structs.replace(FIRST, in_order=True, suspend=0.1)


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as found:
        yield found


async def send(names: str, topic: str, count: int, *, key: str | None = None) -> None:
    async with Producer(names) as producer:
        messages = [
            Message(topic=topic, body=b"%d" % number, sharding_key=key) for number in range(count)
        ]
        if key is None:
            await producer.send_many(messages)
            return
        for message in messages:
            await producer.send(message)


async def collect(consumer: ArrowConsumer, count: int, **how: float) -> list[ArrowBatch]:
    """Acknowledge and return batches of so many messages."""
    found: list[ArrowBatch] = []
    async with asyncio.timeout(PATIENCE):
        async for batch in consumer.arrow_batches(**how):  # type: ignore[arg-type]
            found.append(batch)
            assert await batch.ack()
            if sum(map(len, found)) >= count:
                break
    return found


def bodies(batches: list[ArrowBatch]) -> list[int]:
    return [int(body) for batch in batches for body in batch.records.column("body").to_pylist()]


def test_a_group_goes_on_behind_what_was_acknowledged(running: RunningBroker) -> None:
    async def main() -> None:
        names = running.name_server
        await send(names, "Steps", 500)
        async with ArrowConsumer(names, "steps", "Steps", settings=FIRST) as consumer:
            assert sorted(bodies(await collect(consumer, 500))) == list(range(500))
        await send(names, "Steps", 3)
        settings = ConsumerSettings(consume_from="first", handover=0.1)
        async with Consumer(names, "steps", "Steps", settings=settings) as other:
            got = [await other.receive(PATIENCE) for _ in range(3)]
            assert {message.body for message in got if message} == {b"0", b"1", b"2"}
            assert await other.receive(0.5) is None, "what was acknowledged does not come again"

    asyncio.run(main())


def test_what_was_not_acknowledged_comes_again(running: RunningBroker) -> None:
    async def main() -> None:
        names = running.name_server
        await send(names, "Again", 100)
        async with ArrowConsumer(names, "again", "Again", settings=FIRST) as consumer:
            async for _ in consumer.arrow_batches():
                break
        async with ArrowConsumer(names, "again", "Again", settings=FIRST) as consumer:
            assert sorted(bodies(await collect(consumer, 100))) == list(range(100))

    asyncio.run(main())


def test_batches_come_again_by_the_retry_topic(running: RunningBroker) -> None:
    async def main() -> None:
        names = running.name_server
        await send(names, "Retried", 60)
        async with ArrowConsumer(names, "retried", "Retried", settings=FIRST) as consumer:
            seen, failed = list[ArrowBatch](), 0
            async with asyncio.timeout(PATIENCE):
                async for batch in consumer.arrow_batches():
                    if batch.records.column("reconsumeTimes")[0].as_py() == 0:
                        assert await batch.retry_later(1)
                        assert not await batch.ack(), "it is finished"
                        failed += len(batch)
                    else:
                        seen.append(batch)
                        assert set(batch.records.column("topic").to_pylist()) == {"Retried"}
                        assert await batch.ack()
                    if sum(map(len, seen)) == 60:
                        break
        assert (failed, sorted(bodies(seen))) == (60, list(range(60)))

    asyncio.run(main())


def test_batches_come_again_in_their_order(running: RunningBroker) -> None:
    async def main() -> None:
        names = running.name_server
        await send(names, "Ordered", 80, key="one")
        async with ArrowConsumer(names, "ordered", "Ordered", settings=IN_ORDER) as consumer:
            got, times = list[int](), 0
            async with asyncio.timeout(PATIENCE):
                async for batch in consumer.arrow_batches(most_pulls=1):
                    times += 1
                    if times % 2:
                        assert await batch.retry_later()
                        continue
                    got += bodies([batch])
                    assert await batch.ack()
                    if len(got) == 80:
                        break
        assert got == list(range(80))

    asyncio.run(main())


def test_batches_have_as_many_pulls_as_wanted(running: RunningBroker) -> None:
    async def main() -> None:
        names = running.name_server
        await send(names, "Sizes", 1000, key=None)
        for most, longest in ((1, 32), (64, 1000)):
            group = f"sizes-{most}"
            async with ArrowConsumer(names, group, "Sizes", settings=FIRST) as consumer:
                batches = await collect(consumer, 1000, most_pulls=most, wait=0.3)
            assert max(map(len, batches)) <= longest
            assert len(batches) <= 1000 / longest + 40

    asyncio.run(main())


def test_settings_that_cannot_be() -> None:
    for change in ({"trace": True}, {"client_rebalance": False}):
        with pytest.raises(ClientError, match="neither"):
            ArrowConsumer("x:1", "g", "t", settings=msgspec.structs.replace(SETTINGS, **change))
