"""Kill drivers, and let a last one live until all is in the tables."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mqlake.lake.options import Format
from mqlake.spark.follow.job import follow
from mqlake.spark.session import Session, open_session
from tests.spark.follow import killing
from tests.spark.follow.drivers import Followed, Kind
from tests.spark.follow.life import options
from tests.spark.follow.truths import truths


def run(kinds: Sequence[Kind], kills: int, seed: int) -> list[killing.Outcome]:
    """Kill so many drivers that follow stores into tables of these kinds."""
    with tempfile.TemporaryDirectory() as scratch:
        made = truths(kinds, seed)
        return killing.run(Path(scratch), made, kills, seed, _finish, _tell)


def finish(session: Session, tables: Sequence[Followed]) -> None:
    """Follow all that is there."""
    for one in tables:
        store, format_, out = Path(one.store), Format(one.kind.format), Path(one.out)
        follow(session, options(store, format_, out, once=True, upsert_by=one.kind.column))


def _finish(tables: Sequence[Followed]) -> None:
    with open_session("local[2]") as session:
        finish(session, tables)


def _tell(outcomes: list[killing.Outcome]) -> None:
    each = "; ".join(f"{one.kind}: {one.growths} committed" for one in outcomes)
    violations = sum(one.violations for one in outcomes)
    line = f"{outcomes[0].kills:,} kills, {violations} violations; {each}"
    print(line, file=sys.stderr, flush=True)
