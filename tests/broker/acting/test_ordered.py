"""A consumer that keeps the order continues at a slave that acts, and at the master again."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from mqlake.broker.slave import following
from mqlake.client import Consumer, ConsumerSettings
from mqlake.client import instance as instance_module
from mqlake.formats.config.subscription_group import SubscriptionGroup
from tests import simulated
from tests.broker.acting.groups import group
from tests.broker.acting.test_acting import acts, committed, copied
from tests.broker.pull.pulls import GROUP, fill, numbers
from tests.until import until

SETTINGS = ConsumerSettings(
    consume_from="first", commit_interval=0.1, rebalance_interval=0.5, in_order=True
)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance_module, "ROUTE_INTERVAL", 0.2)
    monkeypatch.setattr(instance_module, "HEARTBEAT_INTERVAL", 0.5)
    for name in ("TICK", "FULL", "_AGAIN"):
        monkeypatch.setattr(following, name, 0.05)


def test_an_ordered_consumer_continues_without_its_master(tmp_path: Path) -> None:
    async def run() -> None:
        found: list[bytes] = []

        async def take(names: str) -> None:
            async with Consumer(names, GROUP, "Orders", settings=SETTINGS) as consumer:
                async for message in consumer:
                    found.append(message.body)
                    await message.ack()

        async with group(tmp_path) as brokers, AsyncExitStack() as first:
            master = await first.enter_async_context(brokers.master())
            async with brokers.slave() as slave:
                await fill(master, 10)
                master.state.groups.put(SubscriptionGroup(GROUP))
                await copied(master, slave)
                await first.aclose()
                await until(lambda: acts(slave))

                # It has never seen the master: the slave alone gives it messages and locks.
                taking = asyncio.create_task(take(brokers.names.address))
                await until(lambda: len(found) == 10)
                await until(lambda: committed(slave) == 10)
                async with brokers.master() as again:
                    assert committed(again) == 10
                    await fill(again, 5, start=10)
                    await until(lambda: committed(again) == 15)
                    assert found == numbers(0, 15)
                    taking.cancel()
                    await asyncio.gather(taking, return_exceptions=True)

    simulated.run(run())
