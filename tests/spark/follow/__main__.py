"""python -m tests.spark.follow: kill drivers that follow stores, and look at their tables."""

from __future__ import annotations

import argparse
import sys
import time

from tests.spark.follow import nightly, page
from tests.spark.follow.killing import KINDS

NIGHTLY = 500
DAY = 86_400


def main() -> int:
    """Return 0 where everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.follow")
    parser.add_argument("--nightly", action="store_true", help="writes docs/reliability.md")
    parser.add_argument("--kills", type=int, default=NIGHTLY, help="of each kind of table")
    parser.add_argument("--seed", type=int, help="another one each day without it")
    parser.add_argument("--table", choices=list(map(str, KINDS)), help="only this one; else all")
    arguments = parser.parse_args()
    seed = int(time.time() // DAY) if arguments.seed is None else arguments.seed
    kinds = [kind for kind in KINDS if arguments.table in (None, str(kind))]
    outcomes = nightly.run(kinds, arguments.kills, seed)
    if arguments.nightly:
        page.write(outcomes, seed)
    for outcome in outcomes:
        print(outcome)
    return 1 if any(outcome.violations for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
