"""python -m tests.follow: kill drivers that follow a store, and look at their tables."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from mqlake.spark.follow.follow import follow
from mqlake.spark.follow.options import Format
from mqlake.spark.session import open_session
from tests.follow import killing, page
from tests.follow.life import options

NIGHTLY = 500
DAY = 86_400
FORMATS = (Format.DELTA, Format.ICEBERG)


def main() -> int:
    """Return 0 where everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.follow")
    parser.add_argument("--nightly", action="store_true", help="writes docs/reliability.md")
    parser.add_argument("--kills", type=int, default=NIGHTLY, help="of each format")
    parser.add_argument("--seed", type=int, help="another one each day without it")
    parser.add_argument("--format", choices=[*Format], help="only this one; else delta and iceberg")
    arguments = parser.parse_args()
    seed = int(time.time() // DAY) if arguments.seed is None else arguments.seed
    formats = [Format(arguments.format)] if arguments.format else FORMATS
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(formats), spawn) as side_by_side:
        run = partial(_run, kills=arguments.kills, seed=seed)
        outcomes = list(side_by_side.map(run, formats))
    if arguments.nightly:
        page.write(outcomes, seed)
    for outcome in outcomes:
        print(outcome)
    return 1 if any(outcome.violations for outcome in outcomes) else 0


def _run(format_: Format, kills: int, seed: int) -> killing.Outcome:
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
    )


if __name__ == "__main__":
    sys.exit(main())
