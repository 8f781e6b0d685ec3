"""The store of each release opens, and nothing in it is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import mqlake
from mqlake.formats.topic_names import HALF_TOPIC, TIMER_TOPIC
from mqlake.protocol.codes import ResponseCode
from tests.broker.running import Running, running, to
from tests.releases.write import COMMITTED, GROUP, SENT, STORES, TOPIC, body
from tests.unpacking import unpack
from tests.until import until

KEPT = {"fileReservedTime": 1_000_000}
"""However old a store is, nothing in it is too old."""
ARCHIVES = sorted(STORES.glob("*.tar.xz"))


def unpacked(archive: Path, to: Path) -> Path:
    """Unpack a store; return it."""
    unpack(archive, to)
    return to / "store"


async def check(broker: Running) -> None:
    """Check that everything is there which `fill` has put."""
    store = broker.state.store
    # Later, messages follow whose time has come since.
    bodies = [record.body for record in broker.records(TOPIC)]
    assert bodies[:SENT] == [body(number) for number in range(SENT)]
    (committed,) = broker.records(TOPIC, 1)
    assert committed.body == b"half"
    assert store.config.consumer_offsets.query(GROUP, TOPIC, 0) == COMMITTED
    topic = broker.state.topics.get(TOPIC)
    assert topic is not None
    assert topic.write_queue_nums == 4
    assert store.reads.queue(HALF_TOPIC, 0).max_offset >= 2
    assert store.reads.queue(TIMER_TOPIC, 0).max_offset >= 2
    await until(lambda: store.timers.waiting_by_topic.get(TOPIC, 0) + delivered(broker) >= 2)


def delivered(broker: Running) -> int:
    """Return how many messages with a delivery time have been delivered since."""
    return dict(broker.state.store.timers.delivered).get((TOPIC,), 0)


def test_there_is_one_of_this_release_and_of_each_before() -> None:
    known = {archive.name.removesuffix(".tar.xz") for archive in ARCHIVES}
    assert known >= {"0.1.0", mqlake.__version__}, "python -m tests.releases.write"


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_a_store_of_a_release_opens(archive: Path, tmp_path: Path) -> None:
    async def run() -> None:
        path = unpacked(archive, tmp_path)
        async with running(path, **KEPT) as broker:
            assert broker.state.store.core.recovered.is_clean
            await check(broker)
            assert (await broker.send(to(TOPIC), b"new")).code == ResponseCode.SUCCESS
            assert b"new" in [record.body for record in broker.records(TOPIC)]

    asyncio.run(run())


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_a_store_of_a_release_recovers(archive: Path, tmp_path: Path) -> None:
    """As after a kill, and with a checkpoint from the beginning."""

    async def run() -> None:
        path = unpacked(archive, tmp_path)
        (path / "abort").touch()
        (path / "checkpoint").unlink()
        async with running(path, **KEPT) as broker:
            assert not broker.state.store.core.recovered.is_clean
            await check(broker)

    asyncio.run(run())
