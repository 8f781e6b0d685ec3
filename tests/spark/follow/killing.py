"""Kill drivers again and again while stores grow; say what their tables then lack or have twice."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from deltalake.exceptions import DeltaError
from pyiceberg.exceptions import NoSuchTableError
from sqlalchemy.exc import OperationalError

from mqlake.lake.options import Format
from tests.lake.tables.tables import Row, data_files, read
from tests.spark.follow.drivers import LONGEST, Driver, Drivers, Followed, Kind

PUTS = 60
"""Messages that are put in each life: more than a micro-batch takes."""

KINDS = (
    Kind("delta"),
    Kind("iceberg"),
    Kind("parquet"),
    Kind("delta", "keys"),
    Kind("iceberg", "keys"),
)


@dataclass
class Outcome:
    """What came of the table of one kind.

    Attributes:
        kills: lives that ended with kill -9.
        others: lives that ended by themselves, with what they said.
        messages: in the store at the end.
        lost, doubled: messages that the table lacks, or has again.
        wrong: those whose body differs.
        files: data files at the end.
        growths: lives after which the table was another than before.
    """

    kind: Kind
    kills: int = 0
    messages: int = 0
    files: int = 0
    growths: int = 0
    others: list[str] = field(default_factory=list[str])
    lost: list[object] = field(default_factory=list[object])
    doubled: list[object] = field(default_factory=list[object])
    wrong: list[object] = field(default_factory=list[object])
    seconds: float = 0.0

    @property
    def violations(self) -> int:
        return len(self.others) + len(self.lost) + len(self.doubled) + len(self.wrong)


class Truth(Protocol):
    """A store, and what its table should have."""

    messages: int

    def put(self, count: int) -> None:
        """Put messages into the store."""
        ...

    def compare(self, rows: Sequence[Row], outcome: Outcome, *, is_last: bool) -> None:
        """Note what is wrong with the rows of the table; some may be missing until the end."""
        ...


class Watched:
    """A store, its table, and what came of them."""

    def __init__(self, scratch: Path, kind: Kind, truth: Callable[[Path], Truth]) -> None:
        self.outcome = Outcome(kind)
        store, self._table = scratch / "store", scratch / "table"
        self.followed = Followed(str(store), str(self._table), kind)
        self.truth = truth(store)
        self._seen = 0

    def look(self, *, is_last: bool = False) -> None:
        """Compare the table with what it should have."""
        format_ = Format(self.outcome.kind.format)
        try:
            found = read(format_, self._table)
        except (DeltaError, NoSuchTableError, OperationalError):
            assert not is_last
            return  # there is no table yet
        if found.num_columns:
            rows = found.to_pylist()
            self.truth.compare(rows, self.outcome, is_last=is_last)
            now = max((row["physicalOffset"] for row in rows), default=0)
            self.outcome.growths += not is_last and now > self._seen
            self._seen = now
        self.outcome.messages = self.truth.messages
        self.outcome.files = len(data_files(format_, self._table))


def run(
    scratch: Path,
    truths: dict[Kind, Callable[[Path], Truth]],
    kills: int,
    seed: int,
    finish: Callable[[Sequence[Followed]], None],
    tell: Callable[[list[Outcome]], None] = lambda _: None,
) -> list[Outcome]:
    """Kill so many drivers, each of which follows one store into a table of each kind.

    It ends at the first violation.

    Args:
        finish: follows what is left, without a kill.
    """
    start = time.monotonic()
    all_ = [Watched(scratch / str(at), *pair) for at, pair in enumerate(truths.items())]
    followed, outcomes = [one.followed for one in all_], [one.outcome for one in all_]
    with Drivers() as drivers:
        for number in range(kills):
            for one in all_:
                one.truth.put(PUTS)
            driver = drivers.next(is_last=number == kills - 1)
            driver.live(seed, number, followed)
            said = driver.end(LONGEST)
            for one in all_:
                note_death(one.outcome, driver, said)
                one.look()
            tell(outcomes)
            if any(one.violations for one in outcomes):
                return outcomes
    for one in all_:
        one.truth.put(PUTS)
    finish(followed)
    for one in all_:
        one.look(is_last=True)
        one.outcome.seconds = time.monotonic() - start
    return outcomes


def note_death(outcome: Outcome, driver: Driver, said: str) -> None:
    """Count a kill, or note how a driver ended by itself."""
    if driver.process.returncode == -signal.SIGKILL:
        outcome.kills += 1
    else:
        outcome.others.append(said)
