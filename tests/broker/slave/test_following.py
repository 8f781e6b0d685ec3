"""The tables of a slave are its master's, whatever the master answers."""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.admin import groups
from mqlake.broker.slave import following
from mqlake.broker.state.topics import BrokerTopics
from mqlake.formats.config import DataVersion
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.pop import RequestMode
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.headers.slaves import AllTopicsHeader, TablePartHeader
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.remoting.server import RemotingServer
from mqlake.replication import master_tables, table_parts
from mqlake.store.settings import BrokerRole
from tests import simulated
from tests.broker.admin.asking import done
from tests.broker.running import Running, running
from tests.broker.slave.pairs import SLAVE, file, pair, switch
from tests.until import until

pytestmark = pytest.mark.usefixtures("often")

FILES = (
    "topics.json",
    "subscriptionGroup.json",
    "consumerOffset.json",
    "delayOffset.json",
    "messageRequestMode.json",
)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slave look again and again."""
    monkeypatch.setattr(following, "TICK", 0.05)
    monkeypatch.setattr(following, "FULL", 0.05)
    monkeypatch.setattr(following, "_AGAIN", 0.05)


async def fill(broker: Running) -> None:
    """Put something into every table of a master."""
    state = broker.state
    state.topics.put(Topic("Orders", 4, 4, attributes={"message.type": "FIFO"}))
    state.groups.put(SubscriptionGroup("readers", retry_max_times=3))
    state.groups.forbid("readers", "Orders", 4)
    offsets = state.store.config.consumer_offsets
    for queue_id in range(4):
        offsets.commit("readers", "Orders", queue_id, 10 + queue_id)
    state.store.config.delay_offsets.set(3, 7)
    mode = RequestMode("Orders", "readers", "POP", 2)
    await done(broker, RequestCode.SET_MESSAGE_REQUEST_MODE, body=encode_body(mode))


def offsets_of(broker: Running) -> dict[str, dict[int, int]]:
    return dict(broker.state.store.config.consumer_offsets.committed())


def test_a_slave_has_its_masters_tables_and_keeps_them(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (leader, slave):
            await fill(leader)
            mine, other = slave.state, leader.state
            await until(lambda: mine.topics.version == other.topics.version)
            await until(lambda: mine.groups.version == other.groups.version)
            await until(lambda: offsets_of(slave) == offsets_of(leader))
            assert mine.groups.forbidden("readers", "Orders") == 4
            config = mine.store.config
            await until(lambda: config.delay_offsets.items() == [(3, 7)])
            timers = other.store.timers
            await until(lambda: mine.store.timers.checkpoint() == timers.checkpoint())
            await until(lambda: file(tmp_path / "slave", FILES[-1]) is not None)

            # What is gone at the master goes at the slave.
            other.topics.remove("Orders")
            other.groups.remove("readers")
            other.store.config.consumer_offsets.remove("readers", "Orders")
            other.store.config.consumer_offsets.commit("readers", "Others", 0, 1)
            await until(lambda: "Orders" not in mine.topics)
            await until(lambda: "readers" not in mine.groups)
            await until(lambda: offsets_of(slave) == {"Others@readers": {0: 1}})
            # A table has its version once all of it is copied.
            await until(lambda: mine.topics.version == other.topics.version)
            await until(lambda: mine.groups.version == other.groups.version)
            offsets = other.store.config.consumer_offsets
            await until(lambda: mine.store.config.consumer_offsets.version == offsets.version)
        for name in FILES:
            mine = file(tmp_path / "slave", name)
            theirs = file(tmp_path / "master", name)
            for table in (mine, theirs):  # how far a broker itself has pulled
                table.pop("pullOffsetTable", None)
            assert mine == theirs, name

    simulated.run(run())


def test_what_clients_ask_of_a_slave_changes_no_table(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, **SLAVE) as slave:
            assert slave.state.groups.get_or_make("new") == SubscriptionGroup("new")
            assert list(slave.state.groups) == list(slave.state.topics) == []

    simulated.run(run())


def test_a_slave_that_is_promoted_follows_nobody(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as (leader, slave):
            await until(lambda: slave.state.topics.version == leader.state.topics.version)
            switch(slave, BrokerRole.ASYNC_MASTER, 0)
            slave.state.store.config.consumer_offsets.commit("g", "T", 0, 5)
            before = slave.state.topics.version
            leader.state.topics.make("Later", 1)
            await until(lambda: not slave.state.replicas.master_answers)
            assert slave.state.topics.version == before
            assert offsets_of(slave) == {"T@g": {0: 5}}

    simulated.run(run())


class Master:
    """A master that answers what it is told to.

    Attributes:
        answers: bodies by request code; a number is a code of refusal.
        asked: how often each code was asked for.
        end: where its log ends.
        looks: how often that was asked for.
    """

    def __init__(self) -> None:
        self.end = self.looks = 0
        self.answers: dict[int, bytes | int] = {}
        self.fields: dict[int, Mapping[str, str]] = {}
        self.asked: dict[int, int] = {}

    def _answer(self, _peer: Peer, request: Command) -> Command:
        self.asked[request.code] = self.asked.get(request.code, 0) + 1
        found = self.answers.get(request.code, ResponseCode.SYSTEM_ERROR)
        if isinstance(found, int):
            return response(request, found, remark="told so")
        return response(request, header=dict(self.fields.get(request.code, {})), body=found)

    def routes(self) -> list[Route]:
        return [Route(code, self._answer) for code in CODES] + [
            Route(RequestCode.GET_BROKER_RUNTIME_INFO, self._where)
        ]

    def _where(self, _peer: Peer, request: Command) -> Command:
        self.looks += 1
        table = {"commitLogMinOffset": "0", "commitLogMaxOffset": str(self.end)}
        return response(request, body=encode_body({"table": table}))


CODES = (
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_ALL_DELAY_OFFSET,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
    RequestCode.GET_TIMER_CHECK_POINT,
)


@asynccontextmanager
async def of_master(path: Path) -> AsyncIterator[tuple[Master, Running]]:
    """Run a slave with tables that were its master's, whose answers the test chooses."""
    told = Master()
    server = RemotingServer(told.routes())
    port = await server.start("127.0.0.1", 0)
    async with running(path, **SLAVE) as slave:
        topics = {name: Topic(name, 4, 4) for name in ("Orders", "Others")}
        list(slave.state.topics.follow(topics, DataVersion(5, 0, 1000)))
        groups = {"readers": SubscriptionGroup("readers")}
        list(slave.state.groups.follow(groups, {"readers": {"Orders": 4}}, DataVersion(5, 0, 1000)))
        known = slave.state.store.config.consumer_offsets
        for _ in known.follow({"Orders@readers": {0: 9}}, DataVersion(5, 0, 1000)):
            pass
        slave.state.store.config.delay_offsets.follow({1: 4}, DataVersion(5, 0, 1000))
        slave.state.replicas.found_master(f"127.0.0.1:{port}", "")
        try:
            yield told, slave
        finally:
            await server.stop()


def state(slave: Running) -> Any:
    state, config = slave.state, slave.state.store.config
    return (
        {name: state.topics.get(name) for name in state.topics},
        {name: state.groups.get(name) for name in state.groups},
        state.groups.forbidden_table(),
        offsets_of(slave),
        config.delay_offsets.items(),
        (state.topics.version, state.groups.version, config.consumer_offsets.version),
    )


OLD = b'{"counter":5,"stateVersion":0,"timestamp":1000}'
NEWER = b'{"counter":6,"stateVersion":0,"timestamp":2000}'
TOPIC = b'{"topicName":"New","readQueueNums":1,"writeQueueNums":1,"perm":6}'
NONSENSE = {
    "no JSON": b"\xff\x00{",
    "no object": b"[1,2]",
    "nothing": b"",
    "no table": b"{}",
    "null": b"null",
    "no version": b'{"topicConfigTable":{},"subscriptionGroupTable":{},"offsetTable":{}}',
    "empty of the same version": b'{"topicConfigTable":{},"subscriptionGroupTable":{},'
    b'"offsetTable":{},"forbiddenTable":{"readers":{"Orders":4}},"dataVersion":' + OLD + b"}",
    "of another type": b'{"topicConfigTable":{"New":5},"subscriptionGroupTable":[],'
    b'"offsetTable":{"a@b":{"x":"y"}},"dataVersion":' + NEWER + b"}",
    "another name": b'{"topicConfigTable":{"Old":' + TOPIC + b'},"subscriptionGroupTable":'
    b'{"a":{"groupName":"b"}},"offsetTable":{"a@b":{0:9223372036854775808}},"dataVersion":'
    + NEWER
    + b"}",
    "no file name": b'{"topicConfigTable":{"../x":{"topicName":"../x"}},"subscriptionGroupTable":'
    b'{"../x":{"groupName":"../x"}},"offsetTable":{"a@b":{70000:1}},"dataVersion":' + NEWER + b"}",
    "deep": b'{"topicConfigTable":' + b'{"a":' * 5000,
    "a huge number": b'{"topicConfigTable":{},"subscriptionGroupTable":{},"offsetTable":'
    b'{"a@b":{"0":99999999999999999999}},"dataVersion":{"counter":1e400}}',
}


@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_destroys_nothing(body: bytes, tmp_path: Path) -> None:
    async def run() -> None:
        async with of_master(tmp_path) as (told, slave):
            before = state(slave)
            told.answers = dict.fromkeys(CODES, body)
            await until(lambda: min(told.asked.get(code, 0) for code in CODES) >= 3)
            assert state(slave) == before

    simulated.run(run())


def test_a_refusal_destroys_nothing_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with of_master(tmp_path) as (told, slave):
            before = state(slave)
            await until(lambda: min(told.asked.get(code, 0) for code in CODES) >= 3)
            assert state(slave) == before

    simulated.run(run())
    lines = [each for each in caplog.messages if each.startswith("topics are not copied")]
    assert len(lines) == 1
    assert "told so" in lines[0]


def test_a_table_that_a_later_version_has_emptied_is_empty(tmp_path: Path) -> None:
    async def run() -> None:
        async with of_master(tmp_path) as (told, slave):
            body = NONSENSE["empty of the same version"].replace(OLD, NEWER)
            told.answers = dict.fromkeys(CODES, body.replace(b'"readers":{"Orders":4}', b""))
            empty = DataVersion(6, 0, 2000)
            wanted = ({}, {}, {}, {}, [], (empty, empty, empty))
            await until(lambda: state(slave) == wanted)

    simulated.run(run())


def test_positions_wait_for_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies before them is done with, but perhaps in the master's log only."""
    monkeypatch.setattr(following, "_PATIENCE", 0.05)

    async def run() -> None:
        async with of_master(tmp_path) as (told, slave):
            before = state(slave)
            told.end = 1
            told.answers = {
                RequestCode.GET_ALL_CONSUMER_OFFSET: b'{"offsetTable":{"Orders@readers":{"0":9}},'
                b'"dataVersion":' + NEWER + b"}",
                RequestCode.GET_ALL_DELAY_OFFSET: b'{"offsetTable":{"1":9},"dataVersion":'
                + NEWER
                + b"}",
                RequestCode.GET_TIMER_CHECK_POINT: struct.pack(">4q", 9, 9, 9, 9),
            }
            timer = slave.state.store.timers.checkpoint()
            asked = told.looks
            await until(lambda: told.looks >= asked + 9)
            assert state(slave) == before
            assert slave.state.store.timers.checkpoint() == timer
            assert slave.state.replicas.master_answers
            told.end = 0  # as if the rest had come
            await until(lambda: offsets_of(slave) == {"Orders@readers": {0: 9}})
            await until(lambda: slave.state.store.config.delay_offsets.items() == [(1, 9)])
            await until(lambda: slave.state.store.timers.checkpoint() != timer)

    simulated.run(run())


def test_pages_that_never_end_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version each time, or a total that is never reached."""
    monkeypatch.setattr(master_tables, "_MOST_PAGES", 20)
    versions = iter(range(10, 100_000))

    async def run() -> None:
        async with of_master(tmp_path) as (told, slave):
            before = state(slave)[0]
            code = RequestCode.GET_ALL_TOPIC_CONFIG
            table = b'{"topicConfigTable":{"New":' + TOPIC + b'},"dataVersion":'
            told.answers[code] = table + NEWER + b"}"
            for total in ("7", "-1", "x", "9" * 50):
                told.fields[code] = {"totalTopicNum": total}
                asked = told.asked.get(code, 0)
                await until(lambda asked=asked: told.asked.get(code, 0) >= asked + 3)
                assert state(slave)[0] == before
            told.fields[code] = {"totalTopicNum": "7"}
            answer = told._answer

            def changing(peer: Peer, request: Command) -> Command:
                version = b'{"counter":%d}' % next(versions)
                told.answers[code] = table + version + b"}"
                return answer(peer, request)

            monkeypatch.setattr(told, "_answer", changing)
            asked = told.asked[code]
            await until(lambda: told.asked[code] >= asked + 8)
            assert state(slave)[0] == before

    simulated.run(run())


def test_a_master_of_a_release_without_a_table_is_followed_in_the_others(tmp_path: Path) -> None:
    async def run() -> None:
        async with of_master(tmp_path) as (told, slave):
            unknown = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            told.answers = dict.fromkeys(CODES, int(unknown))
            code = RequestCode.GET_ALL_TOPIC_CONFIG
            body = b'{"topicConfigTable":{"New":' + TOPIC + b'},"dataVersion":' + NEWER + b"}"
            told.answers[code] = body
            await until(lambda: list(slave.state.topics) == ["New"])

    simulated.run(run())


def topics_of(pages: list[Any]) -> set[str]:
    return {name for page in pages for name in page}


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
def test_pages_make_the_table(count: int, tmp_path: Path) -> None:
    """Also for a slave of RocketMQ's, which asks no more once a single entry is left."""

    async def run() -> None:
        async with running(tmp_path) as broker:
            topics: BrokerTopics = broker.state.topics
            seen: set[str] = set()
            version = encode_body(topics.version).decode()
            for _ in range(len(topics) + 1):
                header = AllTopicsHeader(
                    topic_seq=len(seen), max_topic_num=count, data_version=version
                )
                answer = await done(broker, RequestCode.GET_ALL_TOPIC_CONFIG, header)
                assert answer.fields["totalTopicNum"] == str(len(topics))
                page = set(msgspec.json.decode(bytes(answer.body))["topicConfigTable"])
                assert page
                assert not page & seen
                seen |= page
                if len(seen) >= len(topics) - 1:
                    break
            assert seen == set(topics)
            header = AllTopicsHeader(topic_seq=5, max_topic_num=2, data_version='{"counter":1}')
            answer = await done(broker, RequestCode.GET_ALL_TOPIC_CONFIG, header)
            found = list(msgspec.json.decode(bytes(answer.body))["topicConfigTable"])
            assert found == list(topics)[:2]

    simulated.run(run())


@pytest.mark.parametrize("size", [1, 500, 2 << 20])
def test_long_tables_come_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(table_parts, "SIZE", size)
    codes = RequestCode.GET_ALL_CONSUMER_OFFSET, RequestCode.GET_ALL_MESSAGE_REQUEST_MODE

    async def run() -> None:
        async with pair(tmp_path) as (leader, slave):
            await fill(leader)
            offsets = leader.state.store.config.consumer_offsets
            leader.state.topics.put(Topic("Other", 4, 4))
            for number in range(30):
                for topic in ("Orders", "Other"):
                    offsets.commit(f"g{number}", topic, number % 4, number)
                    mode = encode_body(RequestMode(topic, f"g{number}", "POP", number))
                    await done(leader, RequestCode.SET_MESSAGE_REQUEST_MODE, body=mode)
            await until(lambda: offsets_of(slave) == offsets_of(leader))
            assert len(offsets_of(slave)) == 61

            # Whoever requests no part, as RocketMQ's slaves, gets everything.
            async def modes(broker: Running) -> object:
                answer = await done(broker, RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
                return json.loads(bytes(answer.body))

            async def has_copied() -> bool:
                return await modes(slave) == await modes(leader)

            await until(has_copied)
            for code in codes:
                first = await done(leader, code, TablePartHeader(part=0))
                parts = int(first.fields["parts"])
                assert (parts > 1) == (size < 1000)
                header = TablePartHeader(part=parts, parts=parts)
                assert (await leader.ask(code, header)).code == ResponseCode.INVALID_PARAMETER
            offsets.remove("g7", "Orders")
            await until(lambda: offsets_of(slave) == offsets_of(leader))

    simulated.run(run())


def test_pages_of_long_configurations_are_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "LONGEST", 1000)

    async def run() -> None:
        async with pair(tmp_path) as (leader, slave):
            for number in range(20):
                leader.state.groups.put(SubscriptionGroup(f"g{number}", retry_max_times=number))
            await until(lambda: slave.state.groups.version == leader.state.groups.version)
            assert set(slave.state.groups) == set(leader.state.groups)

    simulated.run(run())
