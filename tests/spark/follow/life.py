"""One life of a driver that follows stores, and its death: `python -m tests.spark.follow.life`.

It starts Spark, and waits for a line with what to follow (`drivers.Life`). The death comes as
kill -9 would: at a step of a commit that a seed draws, or at a time that it draws, counted from the
first micro-batch. The tables take turns at that; the others are killed at whatever they are doing.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import msgspec

from mqlake.lake.options import FollowOptions, Format
from mqlake.lake.tables.opening import open_table
from mqlake.lake.tables.table import LakeTable
from mqlake.spark.follow import job as following
from mqlake.spark.session import Session, open_session
from tests.spark.follow.drivers import Followed, Life
from tests.spark.interpreted import INTERPRETED

BATCH = 40
"""Messages of a micro-batch."""

STEPS = ("shape", "commit", "merges", "replace")
LATEST = 2.5
"""Seconds that a life goes on at most, after its time or its last commit has come."""


def options(
    store: Path, format_: Format, out: Path, *, once: bool, upsert_by: str | None = None
) -> FollowOptions:
    return FollowOptions(
        store=store,
        format=format_,
        out=out,
        checkpoint=out / "_mqlake" / "checkpoint",
        source={"maxOffsetsPerTrigger": str(BATCH)},
        once=once,
        processing_time="0 seconds",
        target_lag=0,
        keep_versions=0,
        compact_every=3,
        publish_after=1,
        upsert_by=upsert_by,
    )


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Mortal:
    """A table whose driver dies before or after one of its calls, or some time after one."""

    def __init__(self, table: LakeTable, chance: random.Random) -> None:
        self._table = table
        self._step, self._calls = chance.choice(STEPS), chance.randint(1, 4)
        self._moment = chance.choice(("before", "after", "later"))
        self._later = chance.uniform(0, LATEST)
        self._idle: threading.Timer | None = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._table, name)

        def run(*arguments: Any, **named: Any) -> Any:
            self._calls -= name == self._step
            is_time = name == self._step and self._calls == 0
            if is_time and self._moment == "before":
                die()
            if is_time and self._moment == "later":
                _in(self._later)
            answer = call(*arguments, **named)
            if is_time and self._moment == "after":
                die()
            if name == "commit":
                self._wait()
            return answer

        return run

    def _wait(self) -> None:
        """Let the end come, too, where there is nothing more to commit."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = _in(2 * LATEST)


def _in(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, die)
    timer.daemon = True
    timer.start()
    return timer


def main() -> None:
    with open_session("local[2]", settings=INTERPRETED) as session:
        line = sys.stdin.buffer.readline()
        if not line:
            return
        life = msgspec.json.decode(line, type=Life)
        chance = random.Random(life.seed)
        mortal = life.tables[life.number % len(life.tables)].out

        def opened(given: FollowOptions) -> LakeTable:
            table: Any = open_table(given)
            return Mortal(table, chance) if str(given.out) == mortal else table  # type: ignore[return-value]

        following.open_table = opened
        with ThreadPoolExecutor(len(life.tables)) as threads:
            running = [threads.submit(_follow, session, one) for one in life.tables]
            for one in as_completed(running):
                if (error := one.exception()) is not None:
                    traceback.print_exception(error)
                os._exit(1)  # a driver must not end by itself


def _follow(session: Session, one: Followed) -> None:
    key, format_ = one.kind.column, Format(one.kind.format)
    given = options(Path(one.store), format_, Path(one.out), once=False, upsert_by=key)
    following.follow(session, given)


if __name__ == "__main__":
    main()
