"""Topics: those a broker has from the start, those that producers make, and who is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.formats.config.topics import PERM_INHERIT, PERM_READ, PERM_WRITE, Topic
from mqlake.protocol.codes import ResponseCode
from tests import simulated
from tests.broker.running import running, to


def test_a_topic_made_by_a_send_is_like_the_default_topic(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, defaultTopicQueueNums=6) as broker:
            for name, queues in (("Few", 3), ("Many", 16), ("None", -1)):
                await broker.send(to(name, default_topic_queue_nums=queues, queue_id=-1))
            topics = broker.state.topics
            assert topics.get("Few") == Topic("Few", 3, 3)
            assert topics.get("Many") == Topic("Many", 6, 6)
            assert topics.get("None") == Topic("None", 0, 0)

            topics.put(Topic("Readable", 2, 2, PERM_READ | PERM_INHERIT))
            await broker.send(to("New", default_topic="Readable", unit_mode=True))
            assert topics.get("New") == Topic("New", 2, 2, PERM_READ, topic_sys_flag=1)

    simulated.run(run())


def test_topics_are_there_after_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await broker.send(to("Orders"))
            version = broker.state.topics.version
        async with running(tmp_path) as broker:
            assert broker.state.topics.get("Orders") == Topic("Orders", 4, 4)
            assert broker.state.topics.version == version

    simulated.run(run())


def test_producers_make_no_topics_where_the_settings_say_so(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            assert (await broker.send(to("Orders"))).code == ResponseCode.SUCCESS
        # TBW102 is in topics.json now.
        async with running(tmp_path, autoCreateTopicEnable=False) as broker:
            assert (await broker.send(to("Orders"))).code == ResponseCode.SUCCESS
            assert (await broker.send(to("New"))).code == ResponseCode.TOPIC_NOT_EXIST
            # A consumer that gives back what it could not consume needs its retry topic.
            assert (await broker.send(to("%RETRY%group"))).code == ResponseCode.SUCCESS
            assert broker.state.topics.get("%RETRY%group") == Topic("%RETRY%group", 1, 1)

    simulated.run(run())


def test_the_topics_of_the_system(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, traceTopicEnable=True) as broker:
            topics = broker.state.topics
            default = topics.get("TBW102")
            assert default == Topic("TBW102", 8, 8, PERM_READ | PERM_WRITE | PERM_INHERIT)
            assert {name for name in topics if topics.is_system(name)} == set(topics)
            assert {"RMQ_SYS_TRACE_TOPIC", "DefaultCluster", "broker-a", "BenchmarkTest"} <= set(
                topics
            )
            assert not topics.is_system("Orders")

    simulated.run(run())


def test_every_change_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            told: list[int] = []
            topics = broker.state.topics

            def changed(_topic: str | None) -> None:
                told.append(topics.version.counter)

            monkeypatch.setattr(broker.state.names, "changed", changed)
            await broker.send(to("Orders"))
            await broker.send(to("Orders"))
            assert len(told) == 1
            topics.make("Orders", 4, order=True)
            topics.make("Orders", 4, order=True)
            assert len(told) == 2
            assert topics.remove("Orders")
            assert not topics.remove("Orders")
            assert len(told) == 3
            assert told == sorted(set(told))

    simulated.run(run())


@pytest.mark.parametrize("group", ["x" * 121, "a/b", " "])
def test_groups_that_cannot_be(tmp_path: Path, group: str) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            assert broker.state.groups.get_or_make(group) is None
            made = broker.state.groups.get_or_make("group")
            assert made is broker.state.groups.get("group")

    simulated.run(run())


def test_groups_of_the_system_can_be_made_where_others_cannot(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, autoCreateSubscriptionGroup=False) as broker:
            groups = broker.state.groups
            assert groups.get_or_make("group") is None
            assert groups.get_or_make("CID_RMQ_SYS_x") is not None
            assert "TOOLS_CONSUMER" in groups

    simulated.run(run())


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_topic_whose_settings_are_lost_is_made_again(tmp_path: Path, is_killed: bool) -> None:
    """A deleted topic has no messages, so that the others were not deleted."""

    async def run() -> None:
        async with running(tmp_path) as broker:
            await broker.send(to("Orders", queue_id=3))
            await broker.send(to("%RETRY%group", queue_id=0))
            await broker.send(to("Deleted", queue_id=0))
            broker.state.store.core.tick()
            await broker.state.store.removals.remove("Deleted")
        (tmp_path / "config" / "topics.json").unlink()
        (tmp_path / "config" / "topics.json.bak").unlink(missing_ok=True)
        if is_killed:
            (tmp_path / "abort").touch()
        async with running(tmp_path, autoCreateTopicEnable=False) as broker:
            assert broker.state.topics.get("Orders") == Topic("Orders", 8, 8)
            assert broker.state.topics.get("Deleted") is None
            assert broker.state.topics.get("%RETRY%group") == Topic("%RETRY%group", 1, 1)
            assert len(broker.records("Orders", 3)) == 1

    simulated.run(run())
