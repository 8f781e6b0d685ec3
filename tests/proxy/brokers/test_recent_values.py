"""What brokers have answered is used for a while."""

from __future__ import annotations

import asyncio

import pytest

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.proxy.brokers.recent_values import RecentValues
from tests import simulated


class Brokers:
    def __init__(self) -> None:
        self.asked = 0
        self.answer: str | Exception | None = "first"

    async def request(self, _name: str) -> str | None:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_value_is_requested_again_after_20_seconds_and_what_does_not_exist_after_one() -> None:
    async def run() -> None:
        brokers = Brokers()
        values = RecentValues(brokers.request)
        assert values.known("a") is None
        assert [await values.get("a"), await values.get("a")] == ["first", "first"]
        assert brokers.asked == 1
        brokers.answer = None
        await asyncio.sleep(19)
        assert await values.get("a") == "first"
        await asyncio.sleep(2)
        assert await values.get("a") is None
        assert await values.get("a") is None
        assert brokers.asked == 2
        brokers.answer = "second"
        await asyncio.sleep(1.5)
        assert await values.get("a") == values.known("a") == "second"

    simulated.run(run())


def test_a_doubted_value_is_requested_again_at_most_once_a_second() -> None:
    async def run() -> None:
        brokers = Brokers()
        values = RecentValues(brokers.request)
        await values.get("a")
        await values.get("a", is_doubted=True)
        assert brokers.asked == 1
        await asyncio.sleep(1.5)
        for _ in range(3):
            await values.get("a", is_doubted=True)
        assert brokers.asked == 2

    simulated.run(run())


def test_the_last_value_counts_while_brokers_do_not_answer_but_not_if_they_refuse() -> None:
    async def run() -> None:
        brokers = Brokers()
        values = RecentValues(brokers.request)
        await values.get("a")
        await asyncio.sleep(21)
        brokers.answer = MqlakeError("silent")
        assert await values.get("a") == "first"
        with pytest.raises(MqlakeError, match="silent"):
            await values.get("b")
        await asyncio.sleep(21)
        brokers.answer = RemotingError(ResponseCode.NO_PERMISSION, "no")
        with pytest.raises(RemotingError):
            await values.get("a")

    simulated.run(run())
