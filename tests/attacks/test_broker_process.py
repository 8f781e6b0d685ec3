"""The harness itself: it sees a stall, and a process that grows."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.attacks import page
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
    with attacked(tmp_path, "No attack, for comparison") as attack:
        time.sleep(1)
    attack.toll.check()
    assert attack.toll.before < attack.toll.peak + (1 << 20)


GOOD = Toll("Do nothing", 0.01, 0.02, 1 << 28, 1 << 27, 1 << 26, Service(10, 0.1, []))


def test_a_toll_that_is_too_high_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOLLS, raising=False)
    GOOD.check()
    for bad in (
        GOOD._replace(stall=1.5),
        GOOD._replace(peak=1 << 30),
        GOOD._replace(service=Service(10, 0.1, ["lost"])),
        GOOD._replace(service=Service(0, 0.0, [])),
    ):
        with pytest.raises(AssertionError):
            bad.check()


def test_the_page_shows_each_attack_under_its_title(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tolls, reliability = tmp_path / "tolls", tmp_path / "reliability.md"
    monkeypatch.setenv(TOLLS, str(tolls))
    GOOD._replace(title="Send nothing").check()
    GOOD.check()
    page.write(page.read(tolls), 0, 60.0, reliability)
    rows = reliability.read_text().splitlines()[-2:]
    assert rows == [
        f"| {title} | 10 | 256 | 10 | 100 |" for title in ("Do nothing", "Send nothing")
    ]
