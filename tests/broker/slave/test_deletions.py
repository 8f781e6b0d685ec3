"""A slave has no queues of topics that its master has deleted, and keeps all others."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from mqlake.broker.slave import following
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.admin import TopicNameHeader
from mqlake.replication import table_answers
from mqlake.store.settings import BrokerRole
from tests import simulated
from tests.broker.admin.asking import done
from tests.broker.running import Running, running, to
from tests.broker.slave.pairs import SLAVE, name_server, pair, switch
from tests.until import until


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slave look again and again."""
    monkeypatch.setattr(following, "TICK", 0.05)
    monkeypatch.setattr(following, "FULL", 0.05)
    monkeypatch.setattr(following, "_AGAIN", 0.05)


async def fill(master: Running, *topics: str) -> None:
    """Put two messages to each topic."""
    for topic in topics:
        for queue_id in range(2):
            await master.send(to(topic, queue_id=queue_id))


async def copied(master: Running, slave: Running) -> None:
    """Wait until a slave has everything."""
    end = master.state.store.watermarks.end
    await until(lambda: slave.state.store.watermarks.dispatched == end)
    await until(lambda: slave.state.topics.version == master.state.topics.version)


async def delete(master: Running, topic: str) -> None:
    await done(master, RequestCode.DELETE_TOPIC_IN_BROKER, TopicNameHeader(topic=topic))


def queues(broker: Running) -> list[str]:
    """Return the topics that have queues."""
    return broker.state.store.reads.topics()


def test_a_promoted_slave_lacks_the_topics_that_its_master_has_deleted(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (master, slave):
            await fill(master, "Deleted", "Orders")
            await copied(master, slave)
            assert queues(slave) == ["Deleted", "Orders"]
            await delete(master, "Deleted")
            await until(lambda: queues(slave) == ["Orders"])
            switch(slave, BrokerRole.ASYNC_MASTER, 0)
            assert "Deleted" not in slave.state.topics
        async with running(tmp_path / "slave") as promoted:
            assert "Deleted" not in promoted.state.topics
            assert len(promoted.records("Orders")) == 1

    simulated.run(run())


def test_a_slave_that_was_down_meanwhile_removes_them_too(tmp_path: Path) -> None:
    async def run() -> None:
        async with name_server() as names, running(tmp_path / "master", namesrvAddr=names) as one:
            slave_of = partial(running, tmp_path / "slave", namesrvAddr=names, **SLAVE)
            await fill(one, "Again", "Deleted", "Orders")
            async with slave_of() as slave:
                await copied(one, slave)
            await delete(one, "Again")
            await delete(one, "Deleted")
            await one.send(to("Again", queue_id=1), b"new")
            async with slave_of() as slave:
                await until(lambda: queues(slave) == ["Again", "Orders"])
                await copied(one, slave)
                assert [each.body for each in slave.records("Again", 1)] == [b"new"]

    simulated.run(run())


def test_queues_stay_that_the_master_has_without_a_topic(tmp_path: Path) -> None:
    """The file of its topics may have been lost."""

    async def run() -> None:
        async with pair(tmp_path) as (master, slave):
            await fill(master, "Lost", "Zapped")
            await copied(master, slave)
            master.state.topics.remove("Lost")
            await delete(master, "Zapped")
            await until(lambda: queues(slave) == ["Lost"])
            await copied(master, slave)
            assert "Lost" not in slave.state.topics
            # Once the master has cleaned up, they go.
            await done(master, RequestCode.CLEAN_UNUSED_TOPIC)
            await until(lambda: not queues(slave))

    simulated.run(run())


def test_queues_stay_whose_messages_are_younger_than_the_table(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await broker.send(to("Orders", queue_id=0))
            end = broker.state.store.watermarks.end
            await broker.send(to("Orders", queue_id=1))
            broker.state.store.dispatching.catch_up()
            broker.state.store.config.consumer_offsets.commit("readers", "Orders", 1, 1)
            await broker.state.store.removals.remove("Orders", end)
            assert broker.state.store.reads.queues("Orders") == [1]
            assert len(broker.records("Orders", 1)) == 1
            offset = broker.state.store.config.consumer_offsets.query("readers", "Orders", 1)
            assert offset == 1

    simulated.run(run())


@pytest.mark.parametrize("is_told", [True, False])
def test_queues_without_new_messages_go_too_if_a_topic_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    """RocketMQ's masters do not say which topics they have deleted: the log shows it."""
    if not is_told:
        monkeypatch.setattr(table_answers, "incarnations", lambda _: None)

    async def run() -> None:
        async with pair(tmp_path) as (master, slave):
            await fill(master, "Orders", "Others")
            await copied(master, slave)
            await delete(master, "Orders")
            await master.send(to("Orders", queue_id=1), b"new")
            await copied(master, slave)
            await until(lambda: slave.state.store.reads.queues("Orders") == [1])
            switch(slave, BrokerRole.ASYNC_MASTER, 0)
            assert [each.body for each in slave.records("Orders", 1)] == [b"new"]
        async with running(tmp_path / "slave") as promoted:
            assert promoted.records("Orders", 0) == []
            assert [each.body for each in promoted.records("Orders", 1)] == [b"new"]
            assert len(promoted.records("Others")) == 1

    simulated.run(run())


def test_a_slave_knows_which_incarnations_have_ended(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (master, slave):
            await fill(master, "Orders", "Others")
            await copied(master, slave)
            await delete(master, "Orders")
            end = master.state.store.incarnations.before("Orders")
            assert end == master.state.store.watermarks.end
            await until(lambda: slave.state.store.incarnations.before("Orders") == end)
            assert slave.state.store.incarnations.before("Others") == 0
        shutil.rmtree(tmp_path / "slave" / "consumequeue")
        async with running(tmp_path / "slave") as promoted:
            assert queues(promoted) == ["Others"]

    simulated.run(run())
