"""What brokers have answered is used for a while."""

from __future__ import annotations

import asyncio

import pytest

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.proxy.brokers.recent_values import AWAITED, LASTS, RENEWED, UNKNOWN, RecentValues
from tests import simulated

LATER = 0.5
"""Seconds, longer than an answer takes."""


class Brokers:
    def __init__(self) -> None:
        self.asked = 0
        self.answer: str | Exception | None = "first"

    async def request(self, name: str) -> str | None:
        self.asked += 1
        await asyncio.sleep(0.1)
        if name.startswith("unknown"):
            return None
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_value_is_renewed_while_it_is_used_and_awaited_once_it_is_old() -> None:
    async def run() -> None:
        brokers = Brokers()
        values = RecentValues(brokers.request)
        assert values.known("a") is None
        assert [await values.get("a"), await values.get("a")] == ["first", "first"]
        assert brokers.asked == 1
        brokers.answer = "second"
        await asyncio.sleep(RENEWED - 1)
        assert await values.get("a") == "first"
        await asyncio.sleep(2)
        assert await values.get("a") == "first"
        await asyncio.sleep(LATER)
        assert await values.get("a") == values.known("a") == "second"
        assert brokers.asked == 2
        brokers.answer = None
        await asyncio.sleep(AWAITED + 1)
        assert await values.get("a") is None
        assert values.known("a") is None
        await values.close()

    simulated.run(run())


def test_what_does_not_exist_is_requested_again_after_a_second() -> None:
    async def run() -> None:
        brokers = Brokers()
        brokers.answer = None
        values = RecentValues(brokers.request)
        assert [await values.get("a"), await values.get("a")] == [None, None]
        assert brokers.asked == 1
        brokers.answer = "now"
        await asyncio.sleep(UNKNOWN + LATER)
        assert await values.get("a") == "now"

    simulated.run(run())


def test_a_doubted_value_is_requested_again_at_most_once_a_second() -> None:
    async def run() -> None:
        brokers = Brokers()
        values = RecentValues(brokers.request)
        await values.get("a")
        await values.get("a", is_doubted=True)
        assert brokers.asked == 1
        await asyncio.sleep(UNKNOWN + LATER)
        await asyncio.gather(*(values.get("a", is_doubted=True) for _ in range(1000)))
        assert brokers.asked == 2

    simulated.run(run())


def test_all_who_ask_wait_for_one_answer_also_if_the_first_of_them_leaves() -> None:
    async def run() -> None:
        brokers = Brokers()
        values = RecentValues(brokers.request)
        asking = [asyncio.create_task(values.get("a")) for _ in range(1000)]
        await asyncio.sleep(0)
        asking[0].cancel()
        assert await asyncio.gather(*asking[1:]) == ["first"] * 999
        assert brokers.asked == 1

    simulated.run(run())


def test_names_that_do_not_exist_displace_no_value() -> None:
    async def run() -> None:
        values = RecentValues(Brokers().request)
        await values.get("a")
        for number in range(25):
            names = (f"unknown-{number}-{each}" for each in range(1000))
            await asyncio.gather(*map(values.get, names))
        assert values.known("a") == "first"

    simulated.run(run())


def test_the_last_value_counts_for_ten_minutes_while_brokers_do_not_answer() -> None:
    async def run() -> None:
        brokers = Brokers()
        values = RecentValues(brokers.request)
        await values.get("a")
        await asyncio.sleep(AWAITED + 1)
        busy = RemotingError(ResponseCode.SYSTEM_BUSY, "busy")
        for silent in (MqlakeError("silent"), busy):
            brokers.answer = silent
            assert await values.get("a") == "first"
            with pytest.raises(MqlakeError):
                await values.get("b")
        await asyncio.sleep(LASTS)
        with pytest.raises(RemotingError):
            await values.get("a")

    simulated.run(run())


def test_a_refusal_of_the_brokers_counts_at_once() -> None:
    async def run() -> None:
        brokers = Brokers()
        values = RecentValues(brokers.request)
        await values.get("a")
        await asyncio.sleep(AWAITED + 1)
        brokers.answer = RemotingError(ResponseCode.NO_PERMISSION, "no")
        with pytest.raises(RemotingError):
            await values.get("a")

    simulated.run(run())
