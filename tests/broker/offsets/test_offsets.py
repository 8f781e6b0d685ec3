"""Offsets of queues and groups."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.header import Header
from mqlake.protocol.headers.offsets import (
    OffsetHeader,
    QueryConsumerOffsetHeader,
    QueueHeader,
    SearchOffsetHeader,
    TimestampHeader,
    UpdateConsumerOffsetHeader,
)
from mqlake.store.append.message import Message
from tests import simulated
from tests.broker.running import Running, running

GROUP: dict[str, Any] = {"consumer_group": "readers", "topic": "Orders", "queue_id": 1}


async def offset(broker: Running, code: int, header: Header) -> int:
    answer = await broker.ask(code, header)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return answer.header(OffsetHeader).offset


async def fill(broker: Running, count: int = 10) -> list[int]:
    """Put messages into queue 1 of the topic; return their store times."""
    broker.state.topics.make("Orders", 4)
    broker.state.groups.get_or_make("readers")
    for _ in range(count):
        await broker.state.store.put(Message("Orders", b"x", queue_id=1))
        await asyncio.sleep(0.002)
    return [record.store_timestamp for record in broker.records("Orders", 1)]


def test_offsets_of_queues(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            times = await fill(broker)
            queue = QueueHeader(topic="Orders", queue_id=1)
            empty = QueueHeader(topic="Orders", queue_id=2)
            assert await offset(broker, RequestCode.GET_MIN_OFFSET, queue) == 0
            assert await offset(broker, RequestCode.GET_MAX_OFFSET, queue) == 10
            assert await offset(broker, RequestCode.GET_MAX_OFFSET, empty) == 0
            answer = await broker.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, queue)
            assert answer.header(TimestampHeader).timestamp == times[0]
            answer = await broker.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, empty)
            assert answer.header(TimestampHeader).timestamp == -1
            for boundary, expected in ((None, 4), ("LOWER", 4), ("UPPER", 3)):
                fields: dict[str, Any] = {} if boundary is None else {"boundary_type": boundary}
                wanted = SearchOffsetHeader(
                    topic="Orders", queue_id=1, timestamp=times[3] + 1, **fields
                )
                code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
                assert await offset(broker, code, wanted) == expected

    simulated.run(main())


def test_groups_commit_offsets(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker)
            code = RequestCode.UPDATE_CONSUMER_OFFSET
            answer = await broker.ask(code, UpdateConsumerOffsetHeader(**GROUP, commit_offset=7))
            assert answer.code == ResponseCode.SUCCESS
            query = QueryConsumerOffsetHeader(**GROUP)
            assert await offset(broker, RequestCode.QUERY_CONSUMER_OFFSET, query) == 7

            offsets = broker.state.store.core.config.consumer_offsets
            offsets.reset("readers", "Orders", 1, 3)
            answer = await broker.ask(code, UpdateConsumerOffsetHeader(**GROUP, commit_offset=9))
            assert answer.remark == "Offset has been previously reset"
            assert await offset(broker, RequestCode.QUERY_CONSUMER_OFFSET, query) == 3

    simulated.run(main())


def test_a_group_without_an_offset(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker)
            code = RequestCode.QUERY_CONSUMER_OFFSET
            assert await offset(broker, code, QueryConsumerOffsetHeader(**GROUP)) == 0
            wanted = QueryConsumerOffsetHeader(**GROUP, set_zero_if_not_found=False)
            assert (await broker.ask(code, wanted)).code == ResponseCode.QUERY_NOT_FOUND
            empty = QueryConsumerOffsetHeader(**(GROUP | {"queue_id": 2}))
            assert (await broker.ask(code, empty)).code == ResponseCode.QUERY_NOT_FOUND

    simulated.run(main())


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"consumer_group": "others"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
        ({"topic": "Others"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queue_id": None}, ResponseCode.INVALID_PARAMETER),
        ({"commit_offset": None}, ResponseCode.INVALID_PARAMETER),
    ],
)
def test_commits_that_are_refused(
    tmp_path: Path, changed: dict[str, object], expected: int
) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 1)
            fields = GROUP | {"commit_offset": 1} | changed
            header = UpdateConsumerOffsetHeader(**fields)
            answer = await broker.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)
            assert answer.code == expected
            assert not broker.state.store.core.config.consumer_offsets.topics_of("readers")

    simulated.run(main())


def test_a_topic_that_is_no_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            header = QueueHeader(topic="../../x", queue_id=0)
            answer = await broker.ask(RequestCode.GET_MAX_OFFSET, header)
            assert answer.code == ResponseCode.SYSTEM_ERROR

    simulated.run(main())
