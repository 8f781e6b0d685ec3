"""A coroutine begins at once, and continues as a task only if it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from mqlake.proxy.at_once import begun
from tests import simulated
from tests.until import rounds


async def now() -> int:
    return 7


def test_one_that_does_not_wait_ends_at_once() -> None:
    assert begun(now()) == 7


def test_errors_are_raised_at_once() -> None:
    async def wrong() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        begun(wrong())


def test_one_that_waits_continues_with_what_it_waited_for() -> None:
    async def run() -> None:
        first, second = (asyncio.get_running_loop().create_future() for _ in range(2))

        async def add() -> int:
            found = await first
            with pytest.raises(KeyError):
                await second
            await asyncio.sleep(1)
            return found + 1

        rest = begun(add())
        assert isinstance(rest, Coroutine)
        task = asyncio.ensure_future(rest)
        first.set_result(1)
        await rounds()
        second.set_exception(KeyError())
        assert await task == 2

    simulated.run(run())


def test_one_that_waits_can_be_cancelled() -> None:
    async def run() -> None:
        seen: list[str] = []

        async def wait() -> Any:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        rest = begun(wait())
        assert isinstance(rest, Coroutine)
        task = asyncio.ensure_future(rest)
        await rounds()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert seen == ["cancelled"]

    simulated.run(run())
