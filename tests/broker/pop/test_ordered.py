"""Pops in order: nothing behind what is not acknowledged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import DeleteGroupHeader, TopicNameHeader
from mqlake.protocol.headers.pop import AckHeader, ChangeInvisibleTimeAnswerHeader
from tests import simulated
from tests.broker.pop.popping import (
    GROUP,
    LONG,
    TOPIC,
    acknowledge,
    change,
    header,
    pop,
    send,
    until_waiting,
)
from tests.broker.running import Running, running


def committed(broker: Running) -> int | None:
    return broker.state.store.core.config.consumer_offsets.query(GROUP, TOPIC, 0)


def test_a_queue_waits_for_what_is_in_hand(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", "b", "c")
            first = await pop(broker, order=True, max_msg_nums=2)
            assert [each.body for each in first] == ["a", "b"]
            assert await pop(broker, order=True) == []
            await acknowledge(broker, first[1])
            assert committed(broker) == 0
            assert await pop(broker, order=True) == []
            waiting = asyncio.create_task(pop(broker, order=True, poll_time=LONG))
            await until_waiting(broker, 1)
            await acknowledge(broker, first[0])
            assert [each.body for each in await waiting] == ["c"]
            assert committed(broker) == 2

    simulated.run(run())


def test_comes_again_in_order_when_its_time_is_over(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", "b")
            (first, _) = await pop(broker, order=True, invisible_time=400)
            assert first.times == 0
            again = await pop(broker, order=True, poll_time=LONG, invisible_time=60_000)
            assert [(each.body, each.times) for each in again] == [("a", 1), ("b", 1)]
            # The receipt of before is not taken any more, without a word.
            await acknowledge(broker, first)
            assert committed(broker) == 0

    simulated.run(run())


def test_a_suspended_message_comes_again_without_being_counted(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", "b")
            first, second = await pop(broker, order=True)
            await change(broker, first, 0, suspend=True)
            await change(broker, second, 0)
            again = await pop(broker, order=True)
            assert [(each.body, each.times) for each in again] == [("a", 0), ("b", 1)]

    simulated.run(run())


def test_the_same_attempt_gets_the_same(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", "b")
            first = await pop(broker, order=True, attempt_id="x", max_msg_nums=1)
            assert await pop(broker, order=True, attempt_id="y", max_msg_nums=1) == []
            again = await pop(broker, order=True, attempt_id="x", max_msg_nums=1)
            assert [each.body for each in first + again] == ["a", "a"]
            assert again[0].times == 0

    simulated.run(run())


def test_an_attempt_id_that_is_too_long(tmp_path: Path) -> None:
    """It would be kept, in memory and in a file."""

    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            for order in (True, False):
                long = header(order=order, attempt_id="x" * 256)
                answer = await broker.ask(RequestCode.POP_MESSAGE, long)
                assert answer.code == ResponseCode.INVALID_PARAMETER
                assert "attemptId has 256 characters; the maximum is 255" in str(answer.remark)
            assert len(await pop(broker, order=True, attempt_id="x" * 255)) == 1

    simulated.run(run())


def test_another_time(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            (first,) = await pop(broker, order=True, invisible_time=3_600_000)
            waiting = asyncio.create_task(pop(broker, order=True, poll_time=LONG))
            await until_waiting(broker, 1)
            answer = await change(broker, first, 0)
            found = answer.header(ChangeInvisibleTimeAnswerHeader)
            assert (found.revive_qid, found.pop_time) == (999, int(first.receipt.split(" ")[1]))
            assert [each.body for each in await waiting] == ["a"]

    simulated.run(run())


def test_a_restart_keeps_what_is_in_hand(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", "b", "c")
            first = await pop(broker, order=True)
            await acknowledge(broker, first[0])
        async with running(tmp_path) as broker:
            assert await pop(broker, order=True) == []
            await acknowledge(broker, *first[1:])
            assert committed(broker) == 3

    simulated.run(run())


def test_an_offset_that_is_not_in_hand(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", "b")
            (first,) = await pop(broker, order=True, max_msg_nums=1)
            header = AckHeader(
                consumer_group=GROUP, topic=TOPIC, queue_id=0, extra_info=first.receipt, offset=1
            )
            answer = await broker.ask(RequestCode.ACK_MESSAGE, header)
            assert answer.code == ResponseCode.MESSAGE_ILLEGAL
            assert "offset is illegal" in str(answer.remark)

    simulated.run(run())


@pytest.mark.parametrize("ends", ["topic", "group"])
def test_a_crash_after_a_deletion_brings_nothing_back(tmp_path: Path, ends: str) -> None:
    kept = tmp_path / "config" / "consumerOrderInfo.json"

    async def main() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", "b")
            assert len(await pop(broker, order=True)) == 2
            await asyncio.sleep(10)
            assert GROUP in kept.read_text()
            if ends == "topic":
                code, header = RequestCode.DELETE_TOPIC_IN_BROKER, TopicNameHeader(TOPIC)
            else:
                code = RequestCode.DELETE_SUBSCRIPTIONGROUP
                header = DeleteGroupHeader(group_name=GROUP, clean_offset=True)
            assert (await broker.ask(code, header)).code == ResponseCode.SUCCESS
            assert GROUP not in kept.read_text()

    simulated.run(main())
