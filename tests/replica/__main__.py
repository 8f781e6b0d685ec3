"""Kill a master, its replica and what follows it into a table: `python -m tests.replica`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.reliability import machine, versions, write_section
from tests.replica.pipeline import Outcome, Pipeline
from tests.seeds import first_seed, tell_violations

NIGHTLY = 100

_ABOUT = """\
Written by `python -m tests.replica --nightly`. A master, `mqlake replica` and `mqlake follow` are
processes of their own; in every other run, one `mqlake follow --replica-of` does the work of the
last two. Four producers send all the time. Each process is killed (SIGKILL) at random times and
started again. At the end the copy must be the master's log byte for byte, and the Delta table must
have each of its messages once, those that were acknowledged among them."""
_KILLS = 10
"""Most kills of each process in one run."""


def main() -> int:
    """Return 0 if nothing was lost or doubled, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.replica")
    parser.add_argument(
        "--nightly", action="store_true", help=f"{NIGHTLY} kills; writes docs/reliability.md"
    )
    parser.add_argument("--kills", type=int, help="of each process")
    parser.add_argument("--seed", type=int, help="by default the day's")
    arguments = parser.parse_args()
    seed = first_seed(arguments.seed)
    left = arguments.kills or (NIGHTLY if arguments.nightly else 2)
    most = min(_KILLS, -(-left // 2))
    begin, total, number = time.monotonic(), Outcome(), 0
    while left > 0:
        with tempfile.TemporaryDirectory() as path:
            pipeline = Pipeline(Path(path), seed + number, is_one=bool(number % 2))
            found = asyncio.run(pipeline.run(min(left, most)))
        _add(total, found)
        print(f"seed {seed + number}: {_counts(found)}", flush=True)
        left, number = left - most, number + 1
    minutes = (time.monotonic() - begin) / 60
    tell_violations(total.problems, f"python -m tests.replica --seed {seed}")
    if arguments.nightly:
        about = f"{minutes:.1f} minutes on {machine()}. {versions()}."
        counts = f"**{_counts(total)}**, on {time.strftime('%Y-%m-%d')}."
        write_section("From a master to a table", [*_ABOUT.splitlines(), "", counts, "", about])
    return 1 if total.problems else 0


def _add(total: Outcome, found: Outcome) -> None:
    total.kills += found.kills
    total.acknowledged += found.acknowledged
    total.messages += found.messages
    total.problems += found.problems


def _counts(found: Outcome) -> str:
    kills = ", ".join(f"{count} of {name}" for name, count in sorted(found.kills.items()))
    return (
        f"kills: {kills}; {found.acknowledged:,} messages acknowledged, {found.messages:,} in the"
        f" table, {len(found.problems)} violations"
    )


if __name__ == "__main__":
    sys.exit(main())
