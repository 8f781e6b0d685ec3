"""Pulls that are answered at once."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.filter import verdicts
from mqlake.formats.config.topics import PERM_READ, PERM_WRITE, Topic
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION
from mqlake.store.append.message import Message
from mqlake.store.reads import warm_up
from tests import simulated
from tests.broker.consuming import Consumer, subscription
from tests.broker.pull.pulls import GROUP, fill, numbers, pull, pull_header, pulled
from tests.broker.running import PATIENCE, Running, running


def test_messages_as_they_lie_in_the_log(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 50)
            found = await pull(broker)
            assert (found.code, found.remark) == (ResponseCode.SUCCESS, "FOUND")
            assert found.bodies == numbers(0, 32), "maxTransferCountOnMessageInMemory"
            assert found.records == broker.records("Orders")[:32]
            offsets = found.offsets
            assert (offsets.next_begin_offset, offsets.min_offset, offsets.max_offset) == (
                32,
                0,
                50,
            )
            assert offsets.suggest_which_broker_id == 0
            assert (await pull(broker, 45)).bodies == numbers(45, 50)
            assert (await pull(broker, 40, max_msg_nums=3)).bodies == numbers(40, 43)
            assert (await pull(broker, 40, max_msg_nums=-1)).bodies == numbers(40, 41)
            size = found.records[0].size
            assert len((await pull(broker, max_msg_bytes=size * 5)).bodies) == 5
            assert len((await pull(broker, max_msg_bytes=1)).bodies) == 1
            lite = await broker.ask(RequestCode.LITE_PULL_MESSAGE, pull_header())
            assert pulled(lite).bodies == numbers(0, 32)

    simulated.run(main())


def test_limits_of_bytes(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, maxTransferBytesOnMessageInMemory=10_000) as broker:
            broker.state.topics.make("Orders", 4)
            for _ in range(5):
                await broker.state.store.put(Message("Orders", bytes(4000)))
            broker.state.store.core.tick()
            assert len((await pull(broker)).records) == 2
            assert len((await pull(broker, max_msg_bytes=1 << 30)).records) == 2
            assert len(
                (await pull(broker, subscription="a IS NULL", expression_type="SQL92")).records
            ) in (2, 3)

    simulated.run(main())


@pytest.mark.parametrize(
    ("offset", "code", "remark", "next_offset"),
    [
        (50, ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", 50),
        (51, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", 0),
        (1 << 62, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", 0),
        (-1, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", 0),
    ],
)
def test_offsets_outside_of_the_queue(
    tmp_path: Path, offset: int, code: int, remark: str, next_offset: int
) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 50)
            found = await pull(broker, offset)
            assert (found.code, found.remark) == (code, remark)
            assert found.offsets.next_begin_offset == next_offset
            assert found.offsets.max_offset == 50
            assert not found.records

    simulated.run(main())


def test_an_empty_queue(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            broker.state.topics.make("Orders", 4)
            found = await pull(broker, queue_id=3)
            assert (found.code, found.remark) == (
                ResponseCode.PULL_NOT_FOUND,
                "NO_MESSAGE_IN_QUEUE",
            )
            found = await pull(broker, 7, queue_id=3)
            assert (found.code, found.offsets.next_begin_offset) == (
                ResponseCode.PULL_OFFSET_MOVED,
                0,
            )

    simulated.run(main())


def test_tags(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 50)
            found = await pull(broker, subscription="t1")
            assert found.bodies == numbers(1, 50, 3)
            assert found.offsets.next_begin_offset == 50
            assert (await pull(broker, subscription="t1 || t2")).bodies[:4] == [
                b"1",
                b"2",
                b"4",
                b"5",
            ]
            none = await pull(broker, subscription="others")
            assert (none.code, none.remark) == (
                ResponseCode.PULL_RETRY_IMMEDIATELY,
                "NO_MATCHED_MESSAGE",
            )
            assert none.offsets.next_begin_offset == 50

    simulated.run(main())


def test_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "SLICE", PATIENCE)

    async def main() -> None:
        async with running(tmp_path, maxFilterMessageSize=2000) as broker:
            await fill(broker, 50, properties={"price": "7"})
            await fill(broker, 200, 50, properties={"price": "100"})
            await fill(broker, 50, 250, properties={"price": "9"})

            async def by(
                expression: str, offset: int = 0, **fields: Any
            ) -> tuple[list[bytes], int]:
                kind = {"subscription": expression, "expression_type": "SQL92"}
                found = await pull(broker, offset, **(kind | fields))
                return found.bodies, found.offsets.next_begin_offset

            assert await by("price = 7") == (numbers(0, 32), 32)
            assert await by("price < 8 AND TAGS = 't0'", 2) == (numbers(3, 50, 3), 102)
            assert await by("price < 10", 48) == (numbers(48, 50), 148), "2000 bytes of entries"
            assert await by("price < 10", 150) == (numbers(250, 250), 250)
            assert await by("price < 10", 250, max_msg_nums=2) == (numbers(250, 252), 252)
            assert await by("price < 10", 298) == (numbers(298, 300), 300)
            assert await by("price = 'abc' OR price > TAGS", 290) == ([], 300), "not comparable"
            assert await by("price > 1", 300) == ([], 300)

    simulated.run(main())


def test_a_group_goes_on_where_it_was_told_to(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 50)
            broker.state.store.core.config.consumer_offsets.reset(GROUP, "Orders", 0, 17)
            commits = HAS_SUBSCRIPTION | COMMITS_OFFSET
            found = await pull(broker, 40, sys_flag=commits, commit_offset=40)
            assert (found.code, found.remark) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET")
            assert found.offsets.next_begin_offset == 17
            assert broker.state.store.config.consumer_offsets.query(GROUP, "Orders", 0) == 17
            assert (await pull(broker, 17)).bodies[0] == b"17"

    simulated.run(main())


def test_a_pull_commits_an_offset(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 50)
            offsets = broker.state.store.core.config.consumer_offsets
            await pull(broker, 20, commit_offset=11)
            assert offsets.query(GROUP, "Orders", 0) is None
            assert offsets.query_pull(GROUP, "Orders", 0) == 50
            await pull(broker, 20, commit_offset=11, sys_flag=HAS_SUBSCRIPTION | COMMITS_OFFSET)
            assert offsets.query(GROUP, "Orders", 0) == 11

    simulated.run(main())


def test_the_subscription_of_the_heartbeat(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 50)
            one = Consumer(broker)

            async def code(**fields: Any) -> int:
                return (await pull(one, sys_flag=0, subscription="ignored", **fields)).code

            assert await code() == ResponseCode.SUBSCRIPTION_NOT_EXIST
            await one.beat(GROUP, subscription("Orders", "t1", 5))
            assert await code(sub_version=6) == ResponseCode.SUBSCRIPTION_NOT_LATEST
            found = await pull(one, sys_flag=0, sub_version=5)
            assert found.bodies == numbers(1, 50, 3)
            broker.state.topics.make("Others", 4)
            assert await code(topic="Others") == ResponseCode.SUBSCRIPTION_NOT_EXIST

            await one.beat(GROUP, subscription("Orders", "TAGS = 't2'", 7, expressionType="SQL92"))
            assert (await pull(one, sys_flag=0)).bodies == numbers(2, 50, 3)
            await one.beat(GROUP, subscription("Orders", "TAGS =", 8, expressionType="SQL92"))
            wrong = await pull(one, sys_flag=0)
            assert wrong.code == ResponseCode.FILTER_DATA_NOT_EXIST
            assert "character 7" in wrong.remark
            await one.close()

    simulated.run(main())


def forbid_group(broker: Running) -> None:
    group = broker.state.groups.get_or_make(GROUP)
    assert group is not None
    broker.state.groups.put(msgspec.structs.replace(group, consume_enable=False))


def forbid_topic(broker: Running) -> None:
    broker.state.topics.put(Topic("Orders", 4, 4, PERM_WRITE))


@pytest.mark.parametrize(
    ("settings", "prepare", "fields", "code", "remark"),
    [
        ({"brokerPermission": 2}, None, {}, ResponseCode.NO_PERMISSION, "the broker["),
        (
            {"autoCreateSubscriptionGroup": False},
            None,
            {},
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            "does not exist",
        ),
        ({}, None, {"consumer_group": "../x"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, ""),
        ({}, forbid_group, {}, ResponseCode.NO_PERMISSION, "subscription group no permission"),
        ({}, None, {"topic": "Others"}, ResponseCode.TOPIC_NOT_EXIST, "not exist"),
        ({}, None, {"topic": "../../x"}, ResponseCode.TOPIC_NOT_EXIST, "not exist"),
        ({}, forbid_topic, {}, ResponseCode.NO_PERMISSION, "the topic[Orders]"),
        ({}, None, {"queue_id": 4}, ResponseCode.INVALID_PARAMETER, "queueId[4] is illegal"),
        ({}, None, {"queue_id": -1}, ResponseCode.INVALID_PARAMETER, "queueId[-1] is illegal"),
        (
            {},
            None,
            {"expression_type": "SQL92", "subscription": "a >"},
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            "character 4",
        ),
        (
            {"enablePropertyFilter": False},
            None,
            {"expression_type": "SQL92", "subscription": "a > 1"},
            ResponseCode.SYSTEM_ERROR,
            "does not support",
        ),
        (
            {},
            None,
            {"subscription": "x" * 40_000},
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            "maxFilterExpressionSize",
        ),
    ],
)
def test_refused(
    tmp_path: Path, settings: Any, prepare: Any, fields: Any, code: int, remark: str
) -> None:
    async def main() -> None:
        async with running(tmp_path, **settings) as broker:
            broker.state.topics.make("Orders", 4)
            if prepare is not None:
                prepare(broker)
            found = await pull(broker, **fields)
            assert found.code == code
            assert remark in found.remark

    simulated.run(main())
    assert not list(tmp_path.rglob("x"))


def test_consumers_that_may_not_read(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, litePullMessageEnable=False) as broker:
            await fill(broker, 5)
            lite = await broker.ask(RequestCode.LITE_PULL_MESSAGE, pull_header())
            assert lite.code == ResponseCode.NO_PERMISSION

            one = Consumer(broker)
            await one.beat(GROUP, subscription("Orders"))
            broker.state.groups.forbid(GROUP, "Orders", PERM_READ)
            found = await pull(one, sys_flag=0)
            assert (found.code, "is forbidden for topic" in found.remark) == (
                ResponseCode.NO_PERMISSION,
                True,
            )
            broker.state.groups.forbid(GROUP, "Orders", 0)
            group = broker.state.groups.get(GROUP)
            assert group is not None
            broker.state.groups.put(msgspec.structs.replace(group, consume_broadcast_enable=False))
            assert (await pull(one, sys_flag=0)).code == ResponseCode.SUCCESS
            await one.beat(GROUP, subscription("Orders"), messageModel="BROADCASTING")
            found = await pull(one, sys_flag=0)
            assert (found.code, "broadcast" in found.remark) == (ResponseCode.NO_PERMISSION, True)
            await one.close()

    simulated.run(main())


@pytest.mark.parametrize(
    "fields",
    [{}, {"subscription": "t1"}, {"subscription": "TAGS = 't1'", "expression_type": "SQL92"}],
)
def test_who_is_far_behind_waits_in_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    threads: list[str] = []
    follow = warm_up.WarmUp.job

    def job(self: warm_up.WarmUp, offset: int, count: int, end: int) -> Any:
        found = follow(self, offset, count, end)
        if found is None:
            return None

        def noted() -> object:
            threads.append(threading.current_thread().name)
            return found()

        return noted

    monkeypatch.setattr(warm_up, "NEAR", 0)
    monkeypatch.setattr(warm_up, "is_in_memory", lambda address, size: False)
    monkeypatch.setattr(warm_up.WarmUp, "job", job)

    async def main() -> None:
        settings = {"maxFilterMessageSize": 200, "mappedFileSizeConsumeQueue": 20_000}
        async with running(tmp_path, **settings) as broker:
            await fill(broker, 1000)
            bodies, offset = list[bytes](), 0
            while offset < 1000:
                found = await pull(broker, offset, **fields)
                bodies += found.bodies
                offset = found.offsets.next_begin_offset
            assert bodies == (numbers(1, 1000, 3) if fields else numbers(0, 1000))
            assert set(threads) <= {"mqlake-read_0", "mqlake-read_1"}
            assert 2 <= len(threads) <= 8, "many messages at a time"

    asyncio.run(main())
