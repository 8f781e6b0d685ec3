"""Values with an age: fetched once for all, again when they are too old."""

from __future__ import annotations

import asyncio

import pytest

from mqlake.console.cluster.aged import (
    AgedValues,
    BackgroundValue,
    begin_noting_old_values,
    noted_old_values,
)
from mqlake.errors import MqlakeError
from mqlake.remoting.errors import RequestTimeoutError


class Source:
    """Counts how often it is asked, and sets the time."""

    def __init__(self) -> None:
        self.now, self.asked = 1000.0, 0
        self.failure: MqlakeError | None = None
        self.open = asyncio.Event()
        self.open.set()

    def time(self) -> float:
        return self.now

    async def fetch(self) -> int:
        self.asked += 1
        await self.open.wait()
        if self.failure is not None:
            raise self.failure
        return self.asked


def test_many_readers_cost_one_request() -> None:
    async def run() -> None:
        source = Source()
        values = AgedValues(source.time)
        source.open.clear()
        readers = [asyncio.create_task(values.get("k", 3, source.fetch)) for _ in range(50)]
        await asyncio.sleep(0)
        source.open.set()
        assert set(await asyncio.gather(*readers)) == {1}
        source.now += 3
        assert await values.get("k", 3, source.fetch) == 1
        source.now += 0.1
        assert await values.get("k", 3, source.fetch) == 2

    asyncio.run(run())


def test_errors_are_not_kept() -> None:
    async def run() -> None:
        source = Source()
        values = AgedValues(source.time)
        source.failure = MqlakeError("no")
        for _ in range(2):
            with pytest.raises(MqlakeError):
                await values.get("k", 3, source.fetch)
        source.failure = None
        assert await values.get("k", 3, source.fetch) == 3

    asyncio.run(run())


def test_old_values_are_swept() -> None:
    async def run() -> None:
        source = Source()
        values = AgedValues(source.time)
        await values.get("a", 3, source.fetch)
        source.now += 50
        await values.get("b", 3, source.fetch)
        source.now += 20
        values.sweep()
        source.now -= 20
        assert await values.get("b", 3, source.fetch) == 2
        assert await values.get("a", 3, source.fetch) == 3

    asyncio.run(run())


def test_an_old_value_is_returned_if_no_server_answers() -> None:
    async def run() -> None:
        source = Source()
        values = AgedValues(source.time)
        await values.get("k", 3, source.fetch)
        source.failure = RequestTimeoutError("1.2.3.4:1: no answer within 3 s")
        begin_noting_old_values()
        source.now += 50
        assert await values.get("k", 3, source.fetch) == 1
        assert noted_old_values() == {"1.2.3.4:1: no answer within 3 s": 50}
        source.now += 11
        with pytest.raises(RequestTimeoutError):
            await values.get("k", 3, source.fetch)
        source.failure = None
        begin_noting_old_values()
        assert await values.get("k", 3, source.fetch) == 4
        assert noted_old_values() == {}

    asyncio.run(run())


def test_a_slow_value_is_fetched_in_the_background() -> None:
    async def run() -> None:
        source = Source()
        value = BackgroundValue(source.time, source.fetch)
        source.open.clear()
        assert (await value.latest(0)).value is None
        assert (await value.latest(0)).value is None
        source.open.set()
        assert (await value.latest(60)).value == 1
        source.now += 20
        assert await value.latest(0) == (1, 20, "")
        source.now += 1
        assert (await value.latest(0)).value == 1
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (await value.latest(0)).value == 2

    asyncio.run(run())


def test_a_slow_value_that_fails_is_tried_again() -> None:
    async def run() -> None:
        source = Source()
        value = BackgroundValue(source.time, source.fetch)
        source.failure = MqlakeError("no")
        assert await value.latest(60) == (None, 1000, "no")
        source.failure = None
        assert (await value.latest(60)).value == 2
        source.now += 21
        source.failure = MqlakeError("no")
        await value.latest(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        source.now += 9
        assert await value.latest(0) == (2, 30, "no")

    asyncio.run(run())
