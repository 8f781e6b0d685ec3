"""The disk refuses to sync at a stop: acknowledged messages stay so, or the stop fails."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from mqlake.errors import DiskError, SyncError
from mqlake.store.loop.log_sync import LogSync
from mqlake.testing.advanced_clock import AdvancedClock
from tests.broker.pop.popping import acknowledge, bodies, change, pop, run, send
from tests.broker.pop.test_pop import OUT, until
from tests.broker.running import running

SETTINGS = {"timerPrecisionMs": 100, "flushIntervalCommitLog": 3_600_000, "reviveQueueNum": 1}


def refuse(monkeypatch: pytest.MonkeyPatch, *errors: DiskError) -> None:
    """Let the next syncs of the log fail."""
    left, real = [*errors], LogSync.now

    def sync(store: LogSync) -> None:
        if left:
            raise left.pop(0)
        real(store)

    monkeypatch.setattr(LogSync, "now", sync)


async def stop_after_a_redelivery(
    path: Path, clock: AdvancedClock, monkeypatch: pytest.MonkeyPatch, *errors: DiskError
) -> None:
    """Stop a broker at which a message was redelivered and then acknowledged."""
    async with running(path, clock=clock, **SETTINGS) as broker:
        await send(broker, "a")
        (popped,) = await pop(broker, invisible_time=OUT)
        await change(broker, popped, OUT)
        clock.advance(OUT / 1000)
        await acknowledge(broker, *await until(broker, 1))
        refuse(monkeypatch, *errors)


def test_a_sync_that_is_refused_once_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        clock, error = AdvancedClock(), DiskError("commitlog: no descriptor", errno.EMFILE)
        await stop_after_a_redelivery(tmp_path, clock, monkeypatch, error)
        async with running(tmp_path, clock=clock, **SETTINGS) as broker:
            clock.advance(OUT / 1000)
            assert bodies(await pop(broker, poll_time=500)) == []

    run(test())


@pytest.mark.parametrize(
    "errors",
    [
        2 * [DiskError("commitlog: no descriptor", errno.EMFILE)],
        [SyncError("commitlog: input/output error", errno.EIO)],
    ],
    ids=["refused twice", "failed"],
)
def test_a_stop_that_cannot_sync_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors: list[DiskError]
) -> None:
    async def test() -> None:
        with pytest.raises(DiskError, match="commitlog"):
            await stop_after_a_redelivery(tmp_path, AdvancedClock(), monkeypatch, *errors)

    run(test())
