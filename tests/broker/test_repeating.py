"""What a broker does by the clock: one function that fails does not end the others."""

from __future__ import annotations

import asyncio

import pytest

from mqlake.broker.repeating import Repeating
from mqlake.remoting.slices import Slices
from tests import simulated


def test_one_that_fails_is_counted_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        repeating, enough = Repeating(Slices(lambda: (1, ""))), asyncio.Event()
        calls: list[int] = []

        def fail() -> None:
            raise ValueError("odd")

        def work() -> None:
            calls.append(1)
            if len(calls) == 20:
                enough.set()

        repeating.every(0.001, fail)
        repeating.every(0.001, work)
        async with asyncio.timeout(60):
            await enough.wait()
        failing, working = repeating
        assert (failing.failure, working.failures) == ("ValueError: odd", 0)
        # It is put off for longer than this test takes the other one to be called so often.
        assert failing.failures < len(calls)
        repeating.stop()
        count = len(calls)
        await asyncio.sleep(0.01)
        assert len(calls) == count

    simulated.run(run())
    assert "fail failed" in caplog.text
    assert "Traceback" in caplog.text
