"""Periodic functions of clients."""

from __future__ import annotations

from mqlake.client.timers import Timer
from tests import simulated
from tests.until import until


def test_a_timer_continues_after_a_failure() -> None:
    async def run() -> None:
        calls: list[int] = []

        async def call() -> None:
            calls.append(len(calls))
            if len(calls) == 1:
                raise RuntimeError("once")

        timer = Timer("test", call, first=0.0, every=60.0)
        timer.start()
        await until(lambda: len(calls) == 1)
        timer.wake()
        await until(lambda: len(calls) == 2)
        await timer.stop()
        assert calls == [0, 1]

    simulated.run(run())
