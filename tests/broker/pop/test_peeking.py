"""What is looked at stays where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.formats.record import Record
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.pop import PeekHeader, PopAnswerHeader
from tests import simulated
from tests.broker.answered_records import answered_records
from tests.broker.live.observing import until
from tests.broker.pop.popping import GROUP, RETRY, TOPIC, acknowledge, bodies, pop, send
from tests.broker.running import Running, running


def header(queue_id: int = -1, most: int = 32) -> PeekHeader:
    return PeekHeader(consumer_group=GROUP, topic=TOPIC, queue_id=queue_id, max_msg_nums=most)


async def peek(broker: Running, queue_id: int = -1, most: int = 32) -> tuple[list[Record], int]:
    """Return the messages, and how many there are besides and with them."""
    answer = await broker.ask(RequestCode.PEEK_MESSAGE, header(queue_id, most))
    assert answer.code in (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND), answer.remark
    found = answered_records(bytes(answer.body))
    assert bool(found) == (answer.code == ResponseCode.SUCCESS)
    return found, answer.header(PopAnswerHeader).rest_num


def texts(found: list[Record]) -> list[str]:
    return sorted(each.body.decode() for each in found)


def test_nothing_is_taken(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", "b")
            await send(broker, "c", queue_id=1)
            offsets = broker.state.store.core.config.consumer_offsets
            for _ in range(2):
                found, rest = await peek(broker)
                assert (texts(found), rest) == (["a", "b", "c"], 3)
                assert offsets.query(GROUP, TOPIC, 0) is None
            assert (texts((await peek(broker, queue_id=1))[0])) == ["c"]
            found, rest = await peek(broker, most=1)
            assert (len(found), rest) == (1, 3)
            taken = await pop(broker)
            assert bodies(taken) == ["a", "b", "c"]
            assert await peek(broker) == ([], 0)
            await acknowledge(broker, *taken)

    simulated.run(check())


def test_retry_topics_are_looked_into(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            await pop(broker, invisible_time=100)
            await until(lambda: bool(broker.records(RETRY)))
            ((found,), rest) = await peek(broker)
            assert (found.topic, found.body, rest) == (RETRY, b"a", 1)

    simulated.run(check())


@pytest.mark.parametrize(
    ("queue_id", "most", "code"),
    [
        (4, 1, ResponseCode.INVALID_PARAMETER),
        (-2, 1, ResponseCode.INVALID_PARAMETER),
        (0, 33, ResponseCode.INVALID_PARAMETER),
        (0, -1, ResponseCode.PULL_NOT_FOUND),
    ],
)
def test_refused(tmp_path: Path, queue_id: int, most: int, code: ResponseCode) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            answer = await broker.ask(RequestCode.PEEK_MESSAGE, header(queue_id, most))
            assert answer.code == code, answer.remark

    simulated.run(check())


def test_a_topic_that_does_not_exist(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            answer = await broker.ask(RequestCode.PEEK_MESSAGE, header())
            assert answer.code == ResponseCode.TOPIC_NOT_EXIST

    simulated.run(check())
