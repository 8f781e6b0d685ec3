"""Whether there is something to pop, and who waits for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.broker.pop.waiting import WaitingPops, Waits
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.pop import (
    NotificationAnswerHeader,
    NotificationHeader,
)
from tests import simulated
from tests.broker.pop import popping
from tests.broker.pop.popping import GROUP, LONG, TOPIC, pop, send, until_waiting
from tests.broker.running import PATIENCE, Running, running


def notification(poll_time: int = 0, **fields: object) -> NotificationHeader:
    return NotificationHeader(
        consumer_group=GROUP,
        topic=TOPIC,
        queue_id=-1,
        poll_time=poll_time,
        **fields,  # pyright: ignore[reportArgumentType]
    )


async def has_message(broker: Running, poll_time: int = 0, **fields: object) -> bool:
    asked = request(RequestCode.NOTIFICATION, notification(poll_time, **fields))
    answer = await broker.client.request(broker.address, asked, PATIENCE)
    return answer.header(NotificationAnswerHeader).has_msg


def test_told_when_there_is_something(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            assert await has_message(broker)
            await pop(broker)
            assert not await has_message(broker)
            waiting = asyncio.create_task(has_message(broker, poll_time=LONG))
            await until_waiting(broker, 1)
            await send(broker, "b", queue_id=3)
            assert await waiting
            assert not await has_message(broker, order=True) or await pop(broker)

    simulated.run(run())


def test_told_when_there_is_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            await pop(broker)
            assert not await has_message(broker, poll_time=200)

    simulated.run(run())


def test_an_attempt_id_that_is_too_long(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            long = notification(attempt_id="x" * 256)
            answer = await broker.ask(RequestCode.NOTIFICATION, long)
            assert answer.code == ResponseCode.INVALID_PARAMETER
            assert "attemptId has 256 characters; the maximum is 255" in str(answer.remark)

    simulated.run(run())


@pytest.mark.parametrize(("order", "kept"), [(True, "attempt"), (False, None)])
def test_what_waits_keeps_what_it_needs_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, order: bool, kept: str | None
) -> None:
    waiting: list[Waits] = []
    add = WaitingPops.add

    def watch(
        self: WaitingPops, topic: str, group: str, queue_id: int, what: Waits, ms: int
    ) -> None:
        waiting.append(what)
        add(self, topic, group, queue_id, what, ms)

    async def run() -> None:
        monkeypatch.setattr(WaitingPops, "add", watch)
        async with running(tmp_path) as broker:
            await send(broker, "a")
            await pop(broker)
            fields: dict[str, object] = {"poll_time": 100, "order": order, "attempt_id": "attempt"}
            await pop(broker, order=True)
            assert not await has_message(broker, **fields)  # pyright: ignore[reportArgumentType]
            await broker.ask(RequestCode.POP_MESSAGE, popping.header(exp_type="type", **fields))
            assert len(waiting) == 2
            for each in waiting:
                held = vars(each)["_header"]
                assert held.attempt_id == kept
                assert getattr(held, "exp_type", None) is None

    simulated.run(run())
