"""Read a table and its log as one while drivers that keep the table are killed; compare each read.

Meanwhile messages are put into the store, and segments of its log are deleted that the table has.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from mqlake.errors import JobError
from mqlake.spark.follow.options import Format
from mqlake.spark.source.options import read_options
from mqlake.spark.union.followed import open_followed
from mqlake.store import BlockingMessageStore, Message
from tests.spark.follow.killing import LONGEST, ROOT, TOPICS
from tests.spark.source.rows import batch_rows
from tests.spark.union.kept_lake import union_rows

COLUMNS = "topic,queueId,queueOffset,storeTimestamp,physicalOffset,keys,body"
SETTINGS = {"mappedFileSizeCommitLog": 1 << 16}
MOST_PUTS = 30

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
        self._seed, self._chance = seed, random.Random(seed)
        self._truth: dict[Key, dict[str, Any]] = {}
        self._given = {"path": str(self._store), "table": str(self._table), "columns": COLUMNS}
        self._put()

    def live(self, number: int) -> None:
        """Let a driver live and be killed; put, delete and read meanwhile and after it."""
        given = [self._store, self.outcome.format, self._table, f"{self._seed}/{number}"]
        command = [sys.executable, "-m", "tests.spark.follow.life", *map(str, given)]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as driver:
            end = time.monotonic() + LONGEST
            while driver.poll() is None and time.monotonic() < end:
                self._step()
            if driver.poll() is None:
                driver.kill()
                self.outcome.others.append("a driver lived too long")
            assert driver.stderr is not None
            said = driver.stderr.read()
        if driver.returncode == -signal.SIGKILL:
            self.outcome.kills += 1
        else:
            self.outcome.others.append(said[-2000:])
        self._step()

    def _step(self) -> None:
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


def _key(row: dict[str, Any]) -> Key:
    return row["topic"], row["queueId"], row["queueOffset"]


def run(
    scratch: Path,
    format_: Format,
    kills: int,
    seed: int,
    tell: Callable[[Outcome], None] = lambda _: None,
) -> Outcome:
    """Kill so many drivers."""
    start = time.monotonic()
    watching = Watching(scratch, format_, seed)
    for number in range(kills):
        watching.live(number)
        tell(watching.outcome)
    watching.outcome.seconds = time.monotonic() - start
    return watching.outcome
