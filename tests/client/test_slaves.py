"""Consumers at a slave: sent there by their master, or because it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from mqlake.client import Consumer, ConsumerSettings
from mqlake.client import instance as instance_module
from mqlake.formats.config.subscription_group import SubscriptionGroup
from tests.broker.pull.pulls import fill
from tests.broker.running import Running, running
from tests.broker.slave.pairs import SLAVE, name_server
from tests.broker.slave.test_refusals import copied
from tests.until import until

GROUP, TOPIC, COUNT = "readers", "Orders", 40
SETTINGS = ConsumerSettings(consume_from="first", commit_interval=0.1, rebalance_interval=1.0)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance_module, "ROUTE_INTERVAL", 0.5)
    monkeypatch.setattr(instance_module, "HEARTBEAT_INTERVAL", 1.0)


@asynccontextmanager
async def cluster(
    path: Path, **settings: object
) -> AsyncIterator[tuple[str, Running, Running, AsyncExitStack]]:
    """Run a master and a slave with the same log; closing the stack stops the master."""
    async with running(path / "master") as broker:
        await fill(broker, COUNT)
        broker.state.groups.put(SubscriptionGroup(GROUP))
    copied(path)
    async with (
        name_server() as names,
        AsyncExitStack() as alone,
        running(path / "slave", namesrvAddr=names, **(SLAVE | settings)) as slave,
    ):
        master = await alone.enter_async_context(
            running(path / "master", namesrvAddr=names, **settings)
        )
        await until(lambda: slave.state.replicas.master_answers)
        yield names, master, slave, alone


@asynccontextmanager
async def consuming(names: str) -> AsyncIterator[list[bytes]]:
    """Run a consumer that acknowledges everything; yield the bodies that it gets."""
    found: list[bytes] = []

    async def take(consumer: Consumer) -> None:
        async for message in consumer:
            found.append(message.body)
            await message.ack()

    async with Consumer(names, GROUP, TOPIC, settings=SETTINGS) as consumer:
        task = asyncio.create_task(take(consumer))
        yield found
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def committed(broker: Running) -> int | None:
    return broker.state.store.config.consumer_offsets.query(GROUP, TOPIC, 0)


def test_a_consumer_that_lags_reads_from_the_slave_and_commits_at_the_master(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        settings: dict[str, object] = {
            "slaveReadEnable": True,
            "accessMessageInMemoryMaxRatio": 0,
            "maxTransferCountOnMessageInMemory": 8,
        }
        async with cluster(tmp_path, **settings) as (names, master, slave, _):
            async with consuming(names) as found:
                await until(lambda: len(found) == COUNT)
                await until(lambda: committed(master) == COUNT)
                # And by its master's table at the slave.
                await until(lambda: committed(slave) == COUNT)
            assert slave.state.stats.got_total > 0

    asyncio.run(run())


def test_without_a_master_a_consumer_goes_on_at_the_slave(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, slaveReadEnable=True) as (names, _, slave, alone):
            await alone.aclose()
            async with consuming(names) as found:
                await until(lambda: len(found) == COUNT)
                await until(lambda: committed(slave) == COUNT)

    asyncio.run(run())


def test_a_consumer_goes_on_when_its_master_leaves_and_returns(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, slaveReadEnable=True) as (names, master, slave, alone):
            async with consuming(names) as found:
                await until(lambda: len(found) == COUNT)
                # Nothing comes again from what is committed.
                await until(lambda: committed(master) == COUNT)
                await alone.aclose()
                slave.state.names.changed()
                await until(lambda: slave.state.replicas.master_address == "")
                async with running(tmp_path / "master", namesrvAddr=names) as again:
                    await fill(again, 5, COUNT)
                    await until(lambda: len(found) == COUNT + 5)
                    await until(lambda: committed(again) == COUNT + 5)
            assert found[:COUNT] == [b"%d" % number for number in range(COUNT)]

    asyncio.run(run())
