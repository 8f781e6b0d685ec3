"""All kills of one format, in a process of its own: the formats run side by side."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from mqlake.spark.follow.job import follow
from mqlake.spark.follow.options import Format
from mqlake.spark.session import open_session
from tests.spark.follow import killing
from tests.spark.follow.life import options


def run(format_: Format, kills: int, seed: int) -> killing.Outcome:
    """Kill so many drivers that follow a store into a table of this format."""
    with tempfile.TemporaryDirectory() as scratch:
        return killing.run(Path(scratch), format_, kills, seed, _finish, _tell)


def _finish(store: Path, format_: Format, out: Path) -> None:
    with open_session("local[2]") as session:
        follow(session, options(store, format_, out, once=True))


def _tell(outcome: killing.Outcome) -> None:
    print(
        f"{outcome.format}: {outcome.kills:,} kills, {outcome.growths:,} lives that committed,"
        f" {outcome.violations} violations",
        file=sys.stderr,
        flush=True,
    )
