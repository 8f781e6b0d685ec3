"""Kill drivers again and again while a store grows; say what the table then lacks or has twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from deltalake.exceptions import DeltaError
from pyiceberg.exceptions import NoSuchTableError
from sqlalchemy.exc import OperationalError

from mqlake.spark.follow.options import Format
from mqlake.store import BlockingMessageStore, Message
from tests.spark.follow.tables import data_files, read

ROOT = Path(__file__).parents[3]
TOPICS = ("Orders", "%RETRY%G", "支付")
PUTS = 60
"""Messages that are put in each life: more than a micro-batch takes."""

LONGEST = 300
"""Seconds that a life may take."""


@dataclass
class Outcome:
    """What came of one format.

    Attributes:
        kills: lives that ended with kill -9.
        others: lives that ended by themselves, with what they said.
        messages: in the store at the end.
        lost, doubled: queue and queue offset of messages that the table lacks, or has again.
        wrong: those whose body differs.
        files: data files at the end.
        growths: lives after which the table had more messages than before.
    """

    format: Format
    kills: int = 0
    messages: int = 0
    files: int = 0
    growths: int = 0
    others: list[str] = field(default_factory=list)
    lost: list[object] = field(default_factory=list)
    doubled: list[object] = field(default_factory=list)
    wrong: list[object] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def violations(self) -> int:
        return len(self.others) + len(self.lost) + len(self.doubled) + len(self.wrong)


class Killing:
    """A store, a table, and drivers that do not live long."""

    def __init__(self, scratch: Path, format_: Format, seed: int) -> None:
        self.outcome = Outcome(format_)
        self.store, self.table = scratch / "store", scratch / "table"
        self._seed, self._chance = seed, random.Random(seed)
        self._seen = 0
        self._sent: dict[tuple[str, int, int], bytes] = {}
        self._put()

    def live(self, number: int) -> None:
        """Let the store grow, and a driver live and be killed; look at the table."""
        self._put()
        arguments = [self.store, self.outcome.format, self.table, f"{self._seed}/{number}"]
        ran = subprocess.run(
            [sys.executable, "-m", "tests.spark.follow.life", *map(str, arguments)],
            cwd=ROOT,
            capture_output=True,
            timeout=LONGEST,
            check=False,
        )
        if ran.returncode == -signal.SIGKILL:
            self.outcome.kills += 1
        else:
            self.outcome.others.append(ran.stderr.decode(errors="replace")[-2000:])
        self._compare(is_last=False)

    def finish(self, follow: Callable[[Path, Format, Path], None]) -> Outcome:
        """Let one driver live until all is in the table; compare."""
        follow(self.store, self.outcome.format, self.table)
        self._compare(is_last=True)
        self.outcome.messages = len(self._sent)
        self.outcome.files = len(data_files(self.outcome.format, self.table))
        return self.outcome

    def _put(self) -> None:
        settings = {"mappedFileSizeCommitLog": 1 << 16}
        with BlockingMessageStore.open(self.store, settings) as store:
            for _ in range(PUTS):
                topic, queue = self._chance.choice(TOPICS), self._chance.randrange(3)
                body = self._chance.randbytes(self._chance.randint(0, 900))
                result = store.put(Message(topic, body, queue_id=queue))
                assert result.queue_offset is not None
                self._sent[topic, queue, result.queue_offset] = body

    def _compare(self, *, is_last: bool) -> None:
        try:
            found = read(self.outcome.format, self.table)
        except (DeltaError, NoSuchTableError, OperationalError):
            assert not is_last
            return  # there is no table yet
        if not found.num_rows:
            return
        columns = [found[name].to_pylist() for name in ("topic", "queueId", "queueOffset")]
        bodies = found["body"].to_pylist()
        keys = list(zip(*columns, strict=True))
        self.outcome.doubled += [key for key, count in Counter(keys).items() if count > 1]
        pairs = zip(keys, bodies, strict=True)
        self.outcome.wrong += [key for key, body in pairs if self._sent.get(key) != body]
        self.outcome.growths += not is_last and len(keys) > self._seen
        self._seen = len(keys)
        if is_last:
            self.outcome.lost += [key for key in self._sent if key not in set(keys)]


def run(
    scratch: Path,
    format_: Format,
    kills: int,
    seed: int,
    follow: Callable[[Path, Format, Path], None],
    tell: Callable[[Outcome], None] = lambda _: None,
) -> Outcome:
    """Kill so many drivers; `follow` then finishes the table."""
    start = time.monotonic()
    killing = Killing(scratch, format_, seed)
    for number in range(kills):
        killing.live(number)
        tell(killing.outcome)
    outcome = killing.finish(follow)
    outcome.seconds = time.monotonic() - start
    return outcome
