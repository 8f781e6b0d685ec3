"""A slave whose promotion has failed follows its master as before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mqlake.errors import DiskError, StoreError
from mqlake.formats.checkpoint import decode_checksummed
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.replication.auto_switch.group import Epochs
from mqlake.store.loop.log_copying import LogCopying
from tests import simulated
from tests.broker.controller.fake import controller
from tests.broker.controller.test_membership import is_master, member, same, send
from tests.broker.running import Running, running
from tests.replication.slaves import FILES, SLAVE, end, follower, server
from tests.until import until


async def promote(broker: Running) -> str:
    """Try to promote a slave; return why it failed."""
    body = b"brokerRole=ASYNC_MASTER\n"
    answer = await broker.ask(RequestCode.UPDATE_BROKER_CONFIG, body=body)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    return answer.remark or ""


def entries(broker: Running) -> list[int]:
    """Return the physical offsets of a queue's entries, from queue offset 0 on."""
    queue = broker.state.store.core.queues.queue("Orders", 0)
    assert queue.first == 0
    return [queue.entry(number).physical_offset for number in range(queue.end)]


async def check_new_topic(one: Running, two: Running) -> None:
    """Check that a slave shows the messages of a topic that its master creates again."""
    await one.state.store.removals.remove("Orders", end(one))
    await send(one, 8)
    await same(one, two)
    assert entries(two) == entries(one)
    assert len(entries(one)) == 8


@asynccontextmanager
async def pair(path: Path) -> AsyncIterator[tuple[Running, Running]]:
    """Run a master, and its slave, which cannot be promoted: the port for slaves is taken."""
    async with running(path / "one", **FILES) as one:
        taken = int(server(one).address.rpartition(":")[2])
        given = SLAVE | {
            "haListenPort": taken,
            "haMasterAddress": server(one).address,
            "enabledAppendPropCRC": True,
        }
        async with running(path / "two", **given) as two:
            await send(one, 5)
            await same(one, two)
            yield one, two


def test_a_topic_that_starts_again_after_a_port_was_in_use(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (one, two):
            assert "stays SLAVE: port" in await promote(two)
            # Records of its master may have no checksums: the checkpoint must not promise any.
            assert decode_checksummed((tmp_path / "two" / "checkpoint").read_bytes()) is None
            await check_new_topic(one, two)

    simulated.run(run())


def test_a_topic_that_starts_again_after_an_epoch_could_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = 0

    async def run() -> None:
        async with controller() as fake, member(tmp_path / "one", fake) as one:
            await until(lambda: is_master(one))
            async with member(tmp_path / "two", fake, enabledAppendPropCRC=True) as two:
                await until(lambda: fake.members == {1, 2})
                await send(one, 5)
                await same(one, two)
                begin = Epochs.begin

                def refuse(epochs: Epochs, number: int, start: int, end: int) -> None:
                    nonlocal failures
                    group = two.state.replication.group
                    if group is not None and epochs is group.epochs:
                        failures += 1
                        raise DiskError("the disk is full")
                    begin(epochs, number, start, end)

                monkeypatch.setattr(Epochs, "begin", refuse)
                fake.elect(2)
                await until(lambda: failures)
                fake.elect(1)
                await until(lambda: is_master(one) and fake.members == {1, 2})
                await check_new_topic(one, two)

    simulated.run(run())
    assert failures


def test_a_store_that_cannot_be_prepared_to_follow_follows_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (one, two):
            monkeypatch.setattr(LogCopying, "follow", _refuse)
            assert "not copied until a restart: the disk is full" in await promote(two)
            assert two.runtime.settings.is_slave
            before = end(two)
            await send(one, 3)
            await asyncio.sleep(0.2)
            assert end(two) == before

    simulated.run(run())


def test_a_store_that_cannot_be_prepared_to_lead_still_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What refuses the one checkpoint may refuse the other one."""

    async def run() -> None:
        async with pair(tmp_path) as (one, two):
            monkeypatch.setattr(LogCopying, "lead", _refuse)
            monkeypatch.setattr(LogCopying, "follow", _refuse)
            assert await promote(two) == "the role stays SLAVE: the disk is full"
            await until(lambda: follower(two).problem is None)
            await check_new_topic(one, two)

    simulated.run(run())


async def _refuse(_: LogCopying) -> None:
    raise StoreError("the disk is full")
