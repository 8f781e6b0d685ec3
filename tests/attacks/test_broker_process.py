"""The harness itself: it sees a stall, and a process that grows."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.attacks.broker_process import TOLLS, Toll, attacked
from tests.attacks.honest_client import Service
from tests.attacks.probe import Probe


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_the_probe_sees_what_holds_the_loop_and_not_what_waits(tmp_path: Path) -> None:
    probe = Probe(tmp_path / "probe")

    async def run() -> None:
        loop = asyncio.get_running_loop()
        probe.watch(loop)
        await asyncio.sleep(0.05)
        time.sleep(0.3)  # noqa: ASYNC251 (as a process that does not get the processor)
        await asyncio.sleep(0.05)
        assert probe.figures.wall >= 0.3
        assert probe.figures.stall < 0.1
        spin(0.2)
        await asyncio.sleep(0.05)
        assert probe.figures.stall >= 0.2
        probe.reset()
        await asyncio.sleep(0.05)
        assert probe.figures.stall < 0.1

    asyncio.run(run())


def test_a_hanging_loop_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match="hung"):
        Probe(tmp_path / "probe").settle(0.1)


def test_nobody_attacks(tmp_path: Path) -> None:
    with attacked(tmp_path) as attack:
        time.sleep(1)
    attack.toll.check()
    assert attack.toll.before < attack.toll.peak + (1 << 20)


def test_a_toll_that_is_too_high_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOLLS, raising=False)
    good = Toll(0.01, 0.01, 1 << 28, 1 << 28, 1 << 28, Service(10, 0.1, []))
    good.check()
    for bad in (
        good._replace(stall=0.5),
        good._replace(peak=1 << 30),
        good._replace(service=Service(10, 0.1, ["lost"])),
        good._replace(service=Service(0, 0.0, [])),
    ):
        with pytest.raises(AssertionError):
            bad.check()
