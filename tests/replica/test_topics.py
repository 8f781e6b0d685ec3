"""A replica has its master's topics, and none that the master has deleted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.admin import TopicNameHeader
from mqlake.replica import replica as module
from mqlake.replica import topics
from mqlake.replica.replica import Replica
from mqlake.replication import table_answers
from mqlake.replication.table_answers import Members
from mqlake.store import StoreReader
from tests.broker.admin.asking import done
from tests.broker.running import Running, running, to
from tests.replica.copies import asked, copying, has_all
from tests.replication.slaves import FILES
from tests.until import until


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL", 0.05)
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(topics, "_EVERY", 0.05)
    monkeypatch.setattr(topics, "_TICK", 0.05)


def nothing(_members: Members) -> None:
    """Return what RocketMQ's masters say about deleted topics."""


async def fill(master: Running, *names: str) -> None:
    """Put two messages to each topic."""
    for name in names:
        for queue_id in range(2):
            await master.send(to(name, queue_id=queue_id))


async def delete(master: Running, topic: str) -> None:
    await done(master, RequestCode.DELETE_TOPIC_IN_BROKER, TopicNameHeader(topic=topic))


def queues(replica: Replica) -> list[str]:
    """Return the topics of which a copy has queues."""
    store = replica._store  # pyright: ignore[reportPrivateUsage]
    return store.reads.topics() if store is not None else []


def ends(path: Path) -> dict[str, int]:
    """Return the number of messages of each topic in a copy."""
    with StoreReader.open(path) as store:
        return {
            name: sum(store.queue(name, queue_id)[1] for queue_id in range(2))
            for name in ("Again", "Deleted", "Orders")
        }


@pytest.mark.parametrize("is_told", [True, False])
def test_a_topic_that_is_deleted_at_the_master_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    """RocketMQ's masters do not say which topics they have deleted: their table shows it."""
    if not is_told:
        monkeypatch.setattr(table_answers, "incarnations", nothing)

    async def run() -> None:
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, "Again", "Deleted", "Orders")
            async with copying(asked(one, tmp_path / "copy")) as replica:
                await has_all(replica, one)
                await until(lambda: queues(replica) == ["Again", "Deleted", "Orders"])
                await delete(one, "Deleted")
                await delete(one, "Again")
                await one.send(to("Again", queue_id=1))
                await has_all(replica, one)
                await until(lambda: queues(replica) == ["Again", "Orders"])

    asyncio.run(run())
    assert ends(tmp_path / "copy") == {"Again": 1, "Deleted": 0, "Orders": 2}


@pytest.mark.parametrize("is_told", [True, False])
def test_a_copy_that_is_made_once_lacks_what_was_deleted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    if not is_told:
        monkeypatch.setattr(table_answers, "incarnations", nothing)

    async def once(one: Running) -> None:
        async with copying(asked(one, tmp_path / "copy", is_patient=False)) as replica:
            await until(lambda: replica.caught_up.is_set() or replica.failed.done())
            assert not replica.failed.done()

    async def run() -> None:
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, "Again", "Deleted", "Orders")
            await once(one)
            assert ends(tmp_path / "copy") == {"Again": 2, "Deleted": 2, "Orders": 2}
            await delete(one, "Deleted")
            await once(one)
            assert ends(tmp_path / "copy") == {"Again": 2, "Deleted": 0, "Orders": 2}
            await delete(one, "Again")
            await one.send(to("Again", queue_id=1))
            await once(one)

    asyncio.run(run())
    assert ends(tmp_path / "copy") == {"Again": 1, "Deleted": 0, "Orders": 2}


def test_topics_of_a_master_without_a_table_stay(tmp_path: Path) -> None:
    """The file of its topics may have been lost."""

    async def run() -> None:
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, "Deleted", "Orders")
            one.state.topics.remove("Orders")
            async with copying(asked(one, tmp_path / "copy")) as replica:
                await until(replica.caught_up.is_set)
                await delete(one, "Deleted")
                await until(lambda: replica._store and replica._store.reads.topics() == ["Orders"])

    asyncio.run(run())
    assert ends(tmp_path / "copy") == {"Again": 0, "Deleted": 0, "Orders": 2}
