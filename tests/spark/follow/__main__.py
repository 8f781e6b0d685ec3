"""python -m tests.spark.follow: kill drivers that follow a store, and look at their tables."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from mqlake.spark.follow.options import Format
from tests.spark.follow import nightly, page

NIGHTLY = 500
DAY = 86_400
FORMATS = (Format.DELTA, Format.ICEBERG)


def main() -> int:
    """Return 0 where everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.follow")
    parser.add_argument("--nightly", action="store_true", help="writes docs/reliability.md")
    parser.add_argument("--kills", type=int, default=NIGHTLY, help="of each format")
    parser.add_argument("--seed", type=int, help="another one each day without it")
    parser.add_argument("--format", choices=[*Format], help="only this one; else delta and iceberg")
    arguments = parser.parse_args()
    seed = int(time.time() // DAY) if arguments.seed is None else arguments.seed
    formats = [Format(arguments.format)] if arguments.format else FORMATS
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(formats), spawn) as side_by_side:
        run = partial(nightly.run, kills=arguments.kills, seed=seed)
        outcomes = list(side_by_side.map(run, formats))
    if arguments.nightly:
        page.write(outcomes, seed)
    for outcome in outcomes:
        print(outcome)
    return 1 if any(outcome.violations for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
