"""Consumers of Arrow batches, with mqlake's broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from mqlake.arrow import SETTINGS, ArrowBatch, ArrowConsumer, columns
from mqlake.arrow import consumer as consumer_module
from mqlake.client import (
    ClientError,
    Compression,
    Consumer,
    ConsumerSettings,
    Message,
    Producer,
    ReceivedMessage,
)
from mqlake.client.consumer import broker_calls, finishing
from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.consumer.statistics import FINISHED, RECEIVED
from mqlake.testing import RunningBroker, broker
from tests.client.servers import wait_for_dispatch
from tests.query.live.topics import wait_for_route
from tests.until import rounds, until

PATIENCE = 200
FIRST = msgspec.structs.replace(SETTINGS, consume_from="first", handover=0.1)
IN_ORDER = msgspec.structs.replace(FIRST, in_order=True, suspend=0.1)


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as found:
        asyncio.run(wait_for_route(found.name_server, "TBW102"))  # which new topics begin with
        yield found


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that a broker is asked for again, for it answers late, comes twice."""
    monkeypatch.setattr(broker_calls, "_TIMEOUT", PATIENCE)


async def send(running: RunningBroker, topic: str, count: int, *, key: str | None = None) -> None:
    """Send messages, and wait until consumers can read them."""
    # What is sent again, for a broker answers late, is stored twice.
    async with Producer(running.name_server, timeout=PATIENCE) as producer:
        messages = [
            Message(topic=topic, body=b"%d" % number, sharding_key=key) for number in range(count)
        ]
        if key is None:
            results = await producer.send_many(messages)
        else:
            results = [await producer.send(message) for message in messages]
    ends: dict[int, int] = {}
    for result in results:
        queue, end = result.queue.queue_id, result.queue_offset + 1
        ends[queue] = max(end, ends.get(queue, 0))
    await wait_for_dispatch(running.address, topic, ends)
    await wait_for_route(running.name_server, topic)


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
        await send(running, "Steps", 500)
        async with ArrowConsumer(names, "steps", "Steps", settings=FIRST) as consumer:
            assert sorted(bodies(await collect(consumer, 500))) == list(range(500))
            counted = {each.metric: each.value for each in consumer.samples()}
            assert (counted[RECEIVED], counted[FINISHED]) == (500, 500)
        await send(running, "Steps", 3)
        settings = ConsumerSettings(consume_from="first", handover=0.1)
        async with Consumer(names, "steps", "Steps", settings=settings) as other:
            got = [await other.receive(PATIENCE) for _ in range(3)]
            assert {message.body for message in got if message} == {b"0", b"1", b"2"}
            assert await other.receive(0.5) is None, "what was acknowledged does not come again"

    asyncio.run(main())


def test_what_was_not_acknowledged_comes_again(running: RunningBroker) -> None:
    async def main() -> None:
        names = running.name_server
        await send(running, "Again", 100)
        async with ArrowConsumer(names, "again", "Again", settings=FIRST) as consumer:
            async for _ in consumer.arrow_batches():
                break
        async with ArrowConsumer(names, "again", "Again", settings=FIRST) as consumer:
            assert sorted(bodies(await collect(consumer, 100))) == list(range(100))

    asyncio.run(main())


def test_batches_come_again_by_the_retry_topic(running: RunningBroker) -> None:
    async def main() -> None:
        names = running.name_server
        await send(running, "Retried", 60)
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
        await send(running, "Ordered", 80, key="one")
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
        await send(running, "Sizes", 1000, key=None)
        for most, longest in ((1, 32), (64, 1000)):
            group = f"sizes-{most}"
            async with ArrowConsumer(names, group, "Sizes", settings=FIRST) as consumer:
                batches = await collect(consumer, 1000, most_pulls=most, wait=0.3)
            assert max(map(len, batches)) <= longest
            assert len(batches) <= 1000 / longest + 40

    asyncio.run(main())


def test_a_cancelled_reader_wakes_another_one(running: RunningBroker) -> None:
    async def main() -> None:
        names, got = running.name_server, asyncio.Event()

        async def read(consumer: ArrowConsumer, wait: float) -> None:
            async for batch in consumer.arrow_batches(wait=wait):
                await batch.ack()
                got.set()

        async with ArrowConsumer(names, "woken", "Woken", settings=FIRST) as consumer:
            slow = asyncio.create_task(read(consumer, 30))
            await rounds()
            other = asyncio.create_task(read(consumer, 0.01))
            await send(running, "Woken", 1)
            await until(lambda: len(consumer._parts.inbox))
            await rounds()
            assert not got.is_set(), "the first one waits for more"
            slow.cancel()
            async with asyncio.timeout(PATIENCE):
                await got.wait()
        await asyncio.gather(slow, other, return_exceptions=True)

    asyncio.run(main())


def test_batches_that_would_be_too_long_are_shorter(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "MAX_BODIES", 400_000)
    monkeypatch.setattr(columns, "MAX_BODY", 100_000)

    async def main() -> None:
        names, small = running.name_server, Compression(over=100)
        async with Producer(names, compression=small, timeout=PATIENCE) as producer:
            queue = (await producer.queues("Long"))[0]
            for _ in range(200):
                await producer.send(Message(topic="Long", body=bytes(5_000)), queue=queue)
        async with ArrowConsumer(names, "long", "Long", settings=FIRST) as consumer:
            batches = await collect(consumer, 200, wait=0.5)
        assert max(map(len, batches)) < 100
        offsets = [row for batch in batches for row in batch.records["queueOffset"].to_pylist()]
        assert offsets == list(range(200)), "each once, and in its order"
        assert not any(batch.faults for batch in batches)

    asyncio.run(main())


def test_what_cannot_be_made_into_columns_is_handed_over_again(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        names = running.name_server
        await send(running, "Broken", 10)
        async with ArrowConsumer(names, "broken", "Broken", settings=FIRST) as consumer:
            with monkeypatch.context() as patch:
                patch.setattr(consumer_module, "to_columns", out_of_memory)
                with pytest.raises(MemoryError):
                    await collect(consumer, 1)
            assert sorted(bodies(await collect(consumer, 10))) == list(range(10))

    asyncio.run(main())


def out_of_memory(_runs: object) -> object:
    raise MemoryError


def test_a_message_that_a_broker_has_taken_back_is_not_sent_back_twice(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    async def send_back(_calls: object, message: ReceivedMessage, level: int, most: int) -> None:
        asked.append(message.queue_offset)
        if message.queue_offset == 3 and asked.count(3) == 1:
            raise ClientError("not this one")

    monkeypatch.setattr(BrokerCalls, "send_back", send_back)
    monkeypatch.setattr(finishing, "_AGAIN", 0.05)

    async def main() -> None:
        names = running.name_server
        await send(running, "Partly", 10, key="one")
        async with ArrowConsumer(names, "partly", "Partly", settings=FIRST) as consumer:
            async with asyncio.timeout(PATIENCE):
                async for batch in consumer.arrow_batches(wait=0.5):
                    await batch.retry_later(1)
                    if asked.count(3) == 2:
                        break

    asyncio.run(main())
    assert sorted(asked) == [0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9]


def test_a_batch_has_a_pull_at_least(running: RunningBroker) -> None:
    async def main() -> None:
        async with ArrowConsumer(running.name_server, "none", "Steps", settings=FIRST) as consumer:
            with pytest.raises(ClientError, match="most_pulls must be at least 1"):
                await collect(consumer, 1, most_pulls=0)

    asyncio.run(main())


def test_settings_that_cannot_be() -> None:
    for change in ({"trace": True}, {"client_rebalance": False}):
        with pytest.raises(ClientError, match="cannot use"):
            ArrowConsumer("x:1", "g", "t", settings=msgspec.structs.replace(SETTINGS, **change))
