from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import DiskError
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.groups import TopicConfigList, TopicNames
from mqlake.protocol.bodies.route import TopicList
from mqlake.protocol.bodies.stats import TopicStats
from mqlake.protocol.body import decode_body, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import TopicCountHeader, TopicNameHeader
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store import Message
from tests import simulated
from tests.broker.admin.asking import done, refused, wanted
from tests.broker.running import running, to

MAKE, LIST = RequestCode.UPDATE_AND_CREATE_TOPIC, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST
DELETE, GET = RequestCode.DELETE_TOPIC_IN_BROKER, RequestCode.GET_TOPIC_CONFIG


def test_a_topic_is_made_changed_and_removed(tmp_path: Path) -> None:
    async def check() -> None:
        name = TopicNameHeader(topic="Orders")
        async with running(tmp_path) as broker:
            await done(broker, MAKE, wanted("Orders", attributes="+message.type=FIFO"))
            await done(broker, MAKE, wanted("Orders", write_queue_nums=1, perm=4))
            topic = decode_body(Topic, (await done(broker, GET, name)).body)
            assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (2, 1, 4)
            assert topic.attributes == {"message.type": "FIFO"}
            await done(broker, MAKE, wanted("Orders", attributes="-message.type"))
            assert decode_body(Topic, (await done(broker, GET, name)).body).attributes == {}
            await done(broker, DELETE, name)
            assert await refused(broker, GET, name, match="not exist") == 17

    simulated.run(check())


def test_a_topic_is_on_the_disk_when_its_creation_or_deletion_is_answered(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await done(broker, MAKE, wanted("Orders"))
            assert "Orders" in kept(tmp_path)
            topics = encode_body(TopicConfigList([Topic(topic_name="A"), Topic(topic_name="B")]))
            await done(broker, LIST, body=topics)
            assert {"A", "B"} <= kept(tmp_path)
            await done(broker, DELETE, TopicNameHeader(topic="A"))
            assert "A" not in kept(tmp_path)

    simulated.run(check())


def kept(path: Path) -> set[str]:
    data = next(path.rglob("config/topics.json")).read_bytes()
    return set(decode_body(dict[str, Any], data)["topicConfigTable"])


@pytest.mark.parametrize(
    ("header", "match"),
    [
        (wanted("../../x"), "illegal characters"),
        (wanted("x" * 128), "longer than topic max length"),
        (wanted(" "), "blank"),
        (wanted("SELF_TEST_TOPIC"), "conflict with system topic"),
        (wanted("T", write_queue_nums=70_000), "cannot have 70000 queues"),
        (wanted("T", read_queue_nums=-1), "cannot have -1 queues"),
        (wanted("T", attributes="+colour=red"), "not supported"),
        (wanted("T", attributes="+queue.type=Other"), "not supported; use BatchCQ, SimpleCQ"),
        (wanted("T", attributes="message.type=FIFO"), "write +name=value or -name"),
    ],
)
def test_a_wrong_topic_is_refused(tmp_path: Path, header: object, match: str) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            code = await refused(broker, MAKE, header, match=match)  # pyright: ignore[reportArgumentType]
            assert code == ResponseCode.INVALID_PARAMETER

    simulated.run(check())


def test_of_a_list_all_topics_are_made_or_none(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            good, bad = Topic(topic_name="A"), Topic(topic_name="a/b")
            await refused(
                broker, LIST, body=encode_body(TopicConfigList([good, bad])), match="illegal"
            )
            assert "A" not in broker.state.topics
            await done(broker, LIST, body=encode_body(TopicConfigList([good])))
            assert broker.state.topics.get("A") == good

    simulated.run(check())


def test_a_removed_topic_begins_anew(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await done(broker, MAKE, wanted("Orders"))
            for _ in range(3):
                await broker.send(to("Orders", queue_id=1))
            broker.state.store.core.config.consumer_offsets.commit("g", "Orders", 1, 2)
            assert len(broker.records("Orders", 1)) == 3
            await done(broker, DELETE, TopicNameHeader(topic="Orders"))
            assert "Orders" not in broker.state.store.core.reads.topics()
            offsets = broker.state.store.core.config.consumer_offsets
            assert offsets.query_topic("g", "Orders") == {}
            assert offsets.query("g", "Orders", 1) == 0  # Whatever its consumers ask for.
            await done(broker, MAKE, wanted("Orders"))
            await broker.send(to("Orders", queue_id=1), b"anew")
            assert [record.body for record in broker.records("Orders", 1)] == [b"anew"]
            assert broker.records("Orders", 1)[0].queue_offset == 0
        async with running(tmp_path) as broker:
            assert [record.body for record in broker.records("Orders", 1)] == [b"anew"]

    simulated.run(check())


def test_removing_a_topic_holds_over_a_crash(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path / "store") as broker:
            await done(broker, MAKE, wanted("Orders"))
            for _ in range(3):
                await broker.send(to("Orders", queue_id=0))
            await done(broker, DELETE, TopicNameHeader(topic="Orders"))
            await done(broker, MAKE, wanted("Orders"))
            await broker.send(to("Orders", queue_id=0), b"anew")
            broker.state.store.core.config.persist()
            # A file that is being written has another name before the copy comes to it.
            unfinished = shutil.ignore_patterns("*.tmp")
            shutil.copytree(tmp_path / "store", tmp_path / "as after kill -9", ignore=unfinished)
        async with running(tmp_path / "as after kill -9") as broker:
            assert not broker.state.store.core.recovered.is_clean
            assert [record.body for record in broker.records("Orders", 0)] == [b"anew"]

    simulated.run(check())


def test_removing_a_topic_removes_its_pop_retry_topics(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await done(broker, MAKE, wanted("Orders"))
            await done(broker, MAKE, wanted("%RETRY%g_Orders"))
            broker.state.store.core.config.consumer_offsets.commit("g", "Orders", 0, 1)
            await done(broker, DELETE, TopicNameHeader(topic="Orders"))
            assert "%RETRY%g_Orders" not in broker.state.topics

    simulated.run(check())


def test_a_deletion_that_the_disk_refuses_once_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retry, left = "%RETRY%g_Orders", ["Orders", "%RETRY%g_Orders"]
    remove_directory = LocalOwnedDirectory.remove_directory

    def refused_once(directory: LocalOwnedDirectory, path: str) -> None:
        if left and f"/{left[-1]}/" in f"/{path}/":
            left.pop()
            raise DiskError(f"{path}: Input/output error")
        remove_directory(directory, path)

    async def check() -> None:
        async with running(tmp_path) as broker:
            for topic in ("Orders", retry):
                await done(broker, MAKE, wanted(topic))
                await broker.state.store.put(Message(topic, b"dispatched"))
            broker.state.store.sync.now()
            broker.state.store.config.consumer_offsets.commit("g", "Orders", 0, 1)
            monkeypatch.setattr(LocalOwnedDirectory, "remove_directory", refused_once)
            for _ in range(2):
                header = TopicNameHeader(topic="Orders")
                await refused(broker, DELETE, header, match="Input/output error")
            await done(broker, DELETE, TopicNameHeader(topic="Orders"))
            assert not left
            for topic in ("Orders", retry):
                assert topic not in broker.state.topics
                assert broker.state.store.queues(topic) == []
                assert not [*(tmp_path / "consumequeue" / topic).rglob("0000*")]

    simulated.run(check())


def test_several_topics_are_deleted_at_once(tmp_path: Path) -> None:
    async def check() -> None:
        code = RequestCode.DELETE_TOPIC_IN_BROKER_LIST
        async with running(tmp_path) as broker:
            for name in ("A", "B", "C", "%RETRY%g_A"):
                broker.state.topics.make(name, 1)
            broker.state.store.core.config.consumer_offsets.commit("g", "A", 0, 1)
            await broker.send(to("A"))
            for bad, match in (([], "blank"), (["A", " "], "blank"), (["A", "TBW102"], "system")):
                await refused(broker, code, body=encode_body(TopicNames(bad)), match=match)
            assert {"A", "B", "C"} <= set(broker.state.topics)
            await done(broker, code, body=encode_body(TopicNames(["A", "B", "A", "never"])))
            assert kept(tmp_path) & {"A", "B", "C", "%RETRY%g_A"} == {"C"}
            assert broker.records("A") == []

    simulated.run(check())


def test_all_topics_and_the_systems(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await done(broker, MAKE, wanted("Orders"))
            answer = await done(broker, RequestCode.GET_ALL_TOPIC_CONFIG)
            table = decode_body(dict[str, object], answer.body)["topicConfigTable"]
            assert isinstance(table, dict)
            assert answer.header(TopicCountHeader).total_topic_num == len(table)
            assert "Orders" in table
            answer = await done(broker, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
            system = decode_body(TopicList, answer.body).topic_list
            assert {"TBW102", "CHECKPOINT_TOPIC", "RMQ_SYS_TRACE_TOPIC"} <= {*system}
            assert "Orders" not in system

    simulated.run(check())


def test_where_the_queues_stand(tmp_path: Path) -> None:
    async def check() -> None:
        header = TopicNameHeader(topic="Orders")
        async with running(tmp_path) as broker:
            code = RequestCode.GET_TOPIC_STATS_INFO
            assert await refused(broker, code, header, match="not exist") == 17
            await done(broker, MAKE, wanted("Orders"))
            await broker.send(to("Orders", queue_id=1))
            last = broker.records("Orders", 1)[-1]
            table = TopicStats.decode((await done(broker, code, header)).body).offset_table
            assert [
                (queue.queue_id, at.min_offset, at.max_offset, at.last_update_timestamp)
                for queue, at in table.items()
            ] == [(0, 0, 0, 0), (1, 0, 1, last.store_timestamp)]
            assert {queue.broker_name for queue in table} == {"broker-a"}

    simulated.run(check())
