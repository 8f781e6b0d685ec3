"""Offsets past the end of a queue: pulls and commits."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.offsets.past_end import GroupQueue, PastEnd
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import TopicNameHeader
from mqlake.protocol.headers.offsets import (
    OffsetHeader,
    QueryConsumerOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from mqlake.store.live_settings import current
from mqlake.store.port import Store
from mqlake.store.results import QueueRange
from tests import simulated
from tests.broker.consuming import Consumer, subscription
from tests.broker.pull.pulls import GROUP, fill, polls, pull, start_pull
from tests.broker.running import Running, running
from tests.until import until

AT = GroupQueue(GROUP, "Orders", 0)
QUEUE: dict[str, Any] = {"consumer_group": GROUP, "topic": "Orders", "queue_id": 0}


def past_end(found: QueueRange, committed: int | None, began: int, *, is_on: bool) -> PastEnd:
    """Return the rule for a queue, an offset of the group, and a topic that began at an offset."""
    store = SimpleNamespace(
        reads=SimpleNamespace(queue=lambda *_: found),
        incarnations=SimpleNamespace(before=lambda _: began),
        dispatching=SimpleNamespace(catch_up=lambda: False),
        config=SimpleNamespace(consumer_offsets=SimpleNamespace(query=lambda *_: committed)),
    )
    settings = current(BrokerSettings(correct_offset_past_end=is_on))
    return PastEnd(settings, cast("Store", store))


@given(
    low=st.integers(0, 50),
    count=st.integers(0, 50),
    beyond=st.integers(1, 1 << 40),
    committed=st.none() | st.integers(0, 150),
    began=st.sampled_from([0, 0, 4096]),
    is_on=st.booleans(),
)
def test_no_message_is_skipped_that_the_group_may_not_have(
    low: int, count: int, beyond: int, committed: int | None, began: int, is_on: bool
) -> None:
    found = QueueRange(low, low + count)
    rule = past_end(found, committed, began, is_on=is_on)
    offset = rule.next_offset(AT, found.max_offset + beyond, found)
    assert low <= offset <= low + count
    assert rule.corrected == 1
    if not is_on:
        assert offset == found.max_offset  # As RocketMQ 5 does.
    elif committed is not None and committed <= found.max_offset:
        assert offset == max(low, committed)
    elif began:
        assert offset == low
    elif committed is None and low == 0:
        assert offset == 0  # As RocketMQ 4.9 does.
    else:
        assert offset == found.max_offset
    assert rule.refuses(AT, found.max_offset + beyond) == is_on
    assert not rule.refuses(AT, found.max_offset)
    assert rule.refused == is_on


def test_what_happened_is_reported_with_numbers(caplog: pytest.LogCaptureFixture) -> None:
    rule = past_end(QueueRange(0, 20), 7, 0, is_on=True)
    for _ in range(3):
        rule.next_offset(AT, 100, QueueRange(0, 20))
    assert rule.refuses(AT, 100)
    with caplog.at_level(logging.WARNING):
        rule.report()
        rule.report()
    assert caplog.messages == [
        (
            "group readers asked for queue offset 100 of topic Orders, queue 0, which has the "
            "offsets 0 to 20: it continues at 7, the group's committed offset (3 times)"
        ),
        (
            "group readers committed queue offset 100 of topic Orders, queue 0, which ends at 20: "
            "ignored (1 times)"
        ),
    ]


def test_reports_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    rule = past_end(QueueRange(0, 20), 7, 0, is_on=True)
    for number in range(1500):
        rule.next_offset(AT, 100 + number, QueueRange(0, 20))
    with caplog.at_level(logging.WARNING):
        rule.report()
    assert len(caplog.messages) == 1001
    assert caplog.messages[-1] == "500 more offsets past the end of a queue"


async def commit(broker: Running, offset: int) -> str:
    header = UpdateConsumerOffsetHeader(**QUEUE, commit_offset=offset)
    answer = await broker.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)
    assert answer.code == ResponseCode.SUCCESS
    return answer.remark or ""


async def committed(broker: Running) -> int:
    header = QueryConsumerOffsetHeader(**QUEUE, set_zero_if_not_found=False)
    answer = await broker.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)
    return answer.header(OffsetHeader).offset if answer.code == ResponseCode.SUCCESS else -1


async def delete(broker: Running) -> None:
    header = TopicNameHeader(topic="Orders")
    answer = await broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, header)
    assert answer.code == ResponseCode.SUCCESS


@pytest.mark.parametrize("new", [0, 20, 50, 80])
def test_a_running_consumer_gets_all_messages_of_a_topic_that_is_created_again(
    tmp_path: Path, new: int
) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            member = Consumer(broker)
            await fill(broker, 50)
            await member.beat(GROUP, subscription("Orders"))
            assert await commit(broker, 50) == ""
            await delete(broker)
            await fill(broker, new)
            # It has not heard of the deletion.
            await commit(broker, 50)
            await commit(broker, 10)
            assert await committed(broker) == 0
            await pull(broker, 50, commit_offset=10, sys_flag=4 | 1)
            found = await pull(broker, 0)
            assert len(found.records) == min(new, 32)
            await commit(broker, min(new, 7))
            assert await committed(broker) == min(new, 7)
            await member.close()

    simulated.run(main())


@pytest.mark.parametrize("new", [20, 80])
def test_a_consumer_that_assigns_itself_queues_gets_all_messages_of_the_new_topic(
    tmp_path: Path, new: int
) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 50)
            # It has no heartbeats, and commits nothing until later.
            assert len((await pull(broker, 0)).records) == 32
            await delete(broker)
            await fill(broker, new)
            await commit(broker, 32)
            assert await committed(broker) == 0
            moved = await pull(broker, 32)
            assert moved.code == ResponseCode.PULL_OFFSET_MOVED
            assert moved.offsets.next_begin_offset == 0
            assert len((await pull(broker, 0)).records) == min(new, 32)
            await commit(broker, 7)
            assert await committed(broker) == 7

    simulated.run(main())


def test_readers_without_a_group_of_their_own_get_the_offset_that_they_ask_for(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            shared = {"consumer_group": "TOOLS_CONSUMER"}
            await fill(broker, 50)
            await pull(broker, 0, **shared)
            await delete(broker)
            await fill(broker, 50)
            found = await pull(broker, 32, **shared)
            assert found.code == ResponseCode.SUCCESS
            assert found.records[0].queue_offset == 32

    simulated.run(main())


def test_a_pull_that_waits_is_answered_when_its_topic_is_deleted(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 50)
            waiting = start_pull(broker, 50, 300_000)
            await until(lambda: len(polls(broker)) == 1)
            await delete(broker)
            assert (await waiting).code == ResponseCode.TOPIC_NOT_EXIST

    simulated.run(main())


def test_a_new_member_of_a_group_begins_a_topic_that_was_created_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            member = Consumer(broker)
            await fill(broker, 50)
            await member.beat(GROUP, subscription("Orders"))
            await commit(broker, 50)
            await delete(broker)
            await fill(broker, 5)
            assert await committed(broker) == 0
            found = await pull(broker, 0)  # It is served at once, and not sent to 0 again.
            assert (found.code, len(found.records)) == (ResponseCode.SUCCESS, 5)
            await commit(broker, 5)
            assert await committed(broker) == 5
            await member.close()

    simulated.run(main())


def test_commits_past_the_end_are_ignored(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            broker.state.groups.get_or_make(GROUP)
            await fill(broker, 50)
            assert await commit(broker, 51) == (
                "Offset is past the end of the queue, and is ignored"
            )
            assert await committed(broker) == -1
            assert await commit(broker, 50) == ""
            await pull(broker, 0, commit_offset=1000, sys_flag=4 | 1)
            assert await committed(broker) == 50
            assert broker.state.past_end.refused == 2

    simulated.run(main())


def test_as_in_rocketmq_5(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, correctOffsetPastEnd=False) as broker:
            broker.state.groups.get_or_make(GROUP)
            await fill(broker, 50)
            assert await commit(broker, 1000) == ""
            assert await committed(broker) == 1000
            found = await pull(broker, 1000)
            assert (found.code, found.offsets.next_begin_offset) == (
                ResponseCode.PULL_OFFSET_MOVED,
                50,
            )

    simulated.run(main())
