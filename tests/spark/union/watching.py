"""Read a table and its log as one while drivers that keep the table are killed; compare each read.

Meanwhile messages are put into the store, and segments of its log are deleted that the table has.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from mqlake.errors import JobError
from mqlake.lake.options import Format
from mqlake.lake.union.followed import open_followed
from mqlake.query.store.options import read_options
from mqlake.store import BlockingMessageStore, Message
from tests.lake.union.kept_lake import union_rows
from tests.query.store.rows import batch_rows
from tests.spark.follow.drivers import LONGEST, Driver, Drivers, Followed, Kind
from tests.spark.follow.truths import TOPICS

COLUMNS = "topic,queueId,queueOffset,storeTimestamp,physicalOffset,keys,body"
SETTINGS = {"mappedFileSizeCommitLog": 1 << 16}
MOST_PUTS = 30
PAUSE = 2
"""How many times as long as it took to look there is a pause: what looks need of the machine,
drivers lack.
"""

Key = tuple[str, int, int]


@dataclass
class Outcome:
    """What came of one format.

    Attributes:
        kills: lives that ended with kill -9.
        others: lives that ended by themselves, with what they said.
        messages: put into the store.
        deleted: segments of the log that were deleted.
        reads: queries over the table and the log.
        from_lake, from_log: messages that they had, by where these were.
        lost, doubled, wrong: messages that a query lacked, had twice, or had with other values.
    """

    format: Format
    kills: int = 0
    messages: int = 0
    deleted: int = 0
    reads: int = 0
    from_lake: int = 0
    from_log: int = 0
    seconds: float = 0.0
    others: list[str] = field(default_factory=list[str])
    lost: list[object] = field(default_factory=list[object])
    doubled: list[object] = field(default_factory=list[object])
    wrong: list[object] = field(default_factory=list[object])

    @property
    def violations(self) -> int:
        return len(self.others) + len(self.lost) + len(self.doubled) + len(self.wrong)


class Watching:
    """A store, a table, drivers that do not live long, and queries over both."""

    def __init__(self, scratch: Path, format_: Format, seed: int) -> None:
        self.outcome = Outcome(format_)
        self._store, self._table = scratch / "store", scratch / "table"
        self.followed = Followed(str(self._store), str(self._table), Kind(format_))
        self._chance = random.Random(seed)
        self._truth: dict[Key, dict[str, Any]] = {}
        self._given = {"path": str(self._store), "table": str(self._table), "columns": COLUMNS}
        self._put()

    def step(self) -> None:
        """Put, delete, read."""
        if self._chance.random() < 0.2:
            self._put()
        if self._chance.random() < 0.2:
            self._delete()
        self._read()

    def _put(self) -> None:
        with BlockingMessageStore.open(self._store, SETTINGS) as store:
            for _ in range(self._chance.randint(1, MOST_PUTS)):
                body = self._chance.randbytes(self._chance.randint(0, 900))
                queue = self._chance.randrange(3)
                store.put(Message(self._chance.choice(TOPICS), body, queue_id=queue, keys=["k"]))
        for row in batch_rows(self._store, columns=COLUMNS):
            self._truth[_key(row)] = row
        self.outcome.messages = len(self._truth)

    def _delete(self) -> None:
        """Delete the segments that the table has, as retention does at any time."""
        try:
            _, (one,) = open_followed(read_options(self._given, streaming=False))
        except JobError:
            return  # there is no table yet
        segments = sorted((self._store / "commitlog").iterdir())
        for segment, following in pairwise(segments):
            if int(following.name) <= one.start:
                segment.unlink()
                self.outcome.deleted += 1

    def _read(self) -> None:
        try:
            rows = union_rows(self._given)
        except JobError:
            if self.outcome.reads:
                raise
            return  # there is no table yet
        self.outcome.reads += 1
        found = Counter(map(_key, rows))
        self.outcome.doubled += [key for key, count in found.items() if count > 1]
        self.outcome.lost += [key for key in self._truth if key not in found]
        self.outcome.wrong += [_key(row) for row in rows if self._truth.get(_key(row)) != row]
        _, (one,) = open_followed(read_options(self._given, streaming=False))
        late = sum(row["physicalOffset"] >= one.start for row in rows)
        self.outcome.from_lake += len(rows) - late
        self.outcome.from_log += late


def run(
    scratch: Path,
    formats: Sequence[Format],
    kills: int,
    seed: int,
    tell: Callable[[list[Outcome]], None] = lambda _: None,
) -> list[Outcome]:
    """Kill so many drivers, each of which follows one store into a table of each format.

    It ends at the first violation.
    """
    start = time.monotonic()
    all_ = [Watching(scratch / one, one, seed + at) for at, one in enumerate(formats)]
    outcomes = [one.outcome for one in all_]
    with Drivers() as drivers:
        for number in range(kills):
            driver = drivers.next(is_last=number == kills - 1)
            driver.live(seed, number, [one.followed for one in all_])
            _watch(all_, driver)
            tell(outcomes)
            if any(outcome.violations for outcome in outcomes):
                break
    for outcome in outcomes:
        outcome.seconds = time.monotonic() - start
    return outcomes


def _watch(all_: Sequence[Watching], driver: Driver) -> None:
    """Put, delete and read while a driver lives, and after its death."""
    end = time.monotonic() + LONGEST
    while driver.process.poll() is None and time.monotonic() < end:
        before = time.monotonic()
        for one in all_:
            one.step()
        _wait(driver, PAUSE * (time.monotonic() - before))
    is_killed = driver.process.poll() == -signal.SIGKILL
    said = driver.end()
    for one in all_:
        if is_killed:
            one.outcome.kills += 1
        else:
            one.outcome.others.append(said or "a driver lived too long")
        one.step()


def _wait(driver: Driver, seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        driver.process.wait(seconds)


def _key(row: dict[str, Any]) -> Key:
    return row["topic"], row["queueId"], row["queueOffset"]
