from __future__ import annotations

import asyncio
import threading

import pytest

from mqlake.console.stores.slow_values import SlowValues
from tests.until import until


def test_a_page_does_not_wait_for_a_slow_value() -> None:
    async def run() -> None:
        now = 0.0
        values, gate, calls = SlowValues(lambda: now), threading.Event(), []

        def find() -> int:
            calls.append(1)
            gate.wait()
            return len(calls)

        assert await values.get("a", 5, find, patience=0) is None
        assert await values.get("a", 5, find, patience=0) is None
        gate.set()

        async def is_found() -> bool:
            found = await values.get("a", 5, find, patience=0)
            return found is not None and found.value == 1

        await until(is_found)
        gate.clear()
        now = 9.0
        old = await values.get("a", 5, find, patience=0)
        assert old is not None
        assert (old.value, old.age) == (1, 9.0)
        gate.set()
        values.forget("a")
        values.close()

    asyncio.run(run())


def test_an_error_is_raised_and_not_kept() -> None:
    async def run() -> None:
        values = SlowValues(lambda: 0.0)

        def fail() -> int:
            raise ValueError("first")

        with pytest.raises(ValueError, match="first"):
            await values.get("a", 5, fail, patience=60)
        found = await values.get("a", 5, lambda: 7, patience=60)
        assert found is not None
        assert found.value == 7
        values.close()

    asyncio.run(run())
