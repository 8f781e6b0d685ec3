"""Clients behind a bad network, and a broker that is killed under them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.broker.running import PATIENCE, running
from tests.chaos.clients import Accidents, Consumer, Producer, check
from tests.chaos.proxy import Proxy, Way
from tests.programs.forked import ForkedBroker
from tests.until import until

TOPIC = "Orders"
QUEUES = 4
COUNT = 100
SEEDS = (1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 22)))


@pytest.fixture
def accidents() -> Iterator[Accidents]:
    handler = Accidents()
    logger = logging.getLogger("mqlake")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def have_acknowledged(producers: list[Producer], count: int) -> bool:
    return sum(len(each.acknowledged) for each in producers) >= count


async def produce_and_consume(
    address: str, count: int, meanwhile: Callable[[list[Producer]], Awaitable[None]] | None = None
) -> None:
    """Send to all queues and read them; check what came."""
    producers = [Producer(address, TOPIC, queue) for queue in range(QUEUES)]
    consumers = [Consumer(address, TOPIC, queue) for queue in range(QUEUES)]
    async with asyncio.TaskGroup() as tasks:
        for queue in range(QUEUES):
            tasks.create_task(producers[queue].send(count))
            tasks.create_task(consumers[queue].read(producers[queue], count))
        if meanwhile:
            tasks.create_task(meanwhile(producers))
    for queue in range(QUEUES):
        check(producers[queue], consumers[queue], queue, count)


@pytest.mark.parametrize("seed", SEEDS)
def test_cuts_and_stalls_lose_nothing_and_keep_order(
    tmp_path: Path, accidents: Accidents, seed: int
) -> None:
    async def run() -> None:
        async with (
            running(tmp_path / "store") as broker,
            Proxy(broker.address, (Way.CUT, Way.STALL), seed) as proxy,
        ):
            await produce_and_consume(proxy.address, COUNT)
            assert min(proxy.seen[way] for way in (Way.CUT, Way.STALL)) >= 3

    asyncio.run(run())
    assert not accidents.lines


@pytest.mark.parametrize("seed", SEEDS)
def test_garbled_bytes_harm_only_those_who_send_them(
    tmp_path: Path, accidents: Accidents, seed: int
) -> None:
    async def harm(address: str) -> None:
        producers = [Producer(address, f"Garbled{queue}", 0) for queue in range(QUEUES)]
        consumers = [Consumer(address, f"Garbled{queue}", 0) for queue in range(QUEUES)]
        sends = [producer.send(1_000_000) for producer in producers]
        pairs = zip(consumers, producers, strict=True)
        reads = [consumer.read(producer, 1_000_000) for consumer, producer in pairs]
        await asyncio.gather(*sends, *reads, return_exceptions=True)

    async def run() -> None:
        async with (
            running(tmp_path / "store") as broker,
            Proxy(broker.address, [Way.GARBLE], seed, share=0.2) as proxy,
        ):
            harming = asyncio.create_task(harm(proxy.address))
            await produce_and_consume(broker.address, COUNT)
            await until(lambda: proxy.seen[Way.GARBLE] >= 50)
            await produce_more(broker.address)
            harming.cancel()
            await asyncio.gather(harming, return_exceptions=True)
        async with running(tmp_path / "store"):
            pass

    async def produce_more(address: str) -> None:
        producer = Producer(address, "Later", 0, PATIENCE)  # so that each is sent once
        await producer.send(10)
        assert producer.tries == 10

    asyncio.run(run())
    assert not accidents.lines


@pytest.mark.parametrize("seed", SEEDS)
def test_a_broker_killed_again_and_again_loses_nothing_that_it_acknowledged(
    tmp_path: Path, seed: int
) -> None:
    """SYNC_FLUSH, and a network that cuts besides."""
    process = ForkedBroker(tmp_path / "store", tmp_path / "log", {"flushDiskType": "SYNC_FLUSH"})

    async def kill(producers: list[Producer]) -> None:
        for share in (0.25, 0.6):
            wanted = int(share * QUEUES * COUNT)
            await until(partial(have_acknowledged, producers, wanted))
            await asyncio.to_thread(process.kill)
            await asyncio.to_thread(process.start)

    async def run() -> None:
        async with Proxy(process.address, [Way.CUT], seed, share=0.01) as proxy:
            await produce_and_consume(proxy.address, COUNT, kill)

    try:
        asyncio.run(run())
        assert process.stop() == 0, process.log.read_text()
    finally:
        process.kill()
