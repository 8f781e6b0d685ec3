"""python -m tests.spark.union: read tables and logs as one while what keeps them is killed."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from mqlake.lake.options import Format
from tests.spark.union import page, watching

NIGHTLY = 100
DAY = 86_400


def main() -> int:
    """Return 0 if everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.union")
    parser.add_argument("--nightly", action="store_true", help="writes docs/reliability.md")
    parser.add_argument("--kills", type=int, default=NIGHTLY, help="of each format")
    parser.add_argument("--seed", type=int, help="another one each day without it")
    parser.add_argument("--format", choices=[*Format], help="only this one; else all")
    arguments = parser.parse_args()
    seed = int(time.time() // DAY) if arguments.seed is None else arguments.seed
    formats = [Format(arguments.format)] if arguments.format else [*Format]
    with tempfile.TemporaryDirectory() as scratch:
        outcomes = watching.run(Path(scratch), formats, arguments.kills, seed, _tell)
    if arguments.nightly:
        page.write(outcomes, seed)
    for outcome in outcomes:
        print(outcome)
    return 1 if any(outcome.violations for outcome in outcomes) else 0


def _tell(outcomes: list[watching.Outcome]) -> None:
    each = "; ".join(f"{one.format}: {one.reads:,} reads" for one in outcomes)
    violations = sum(one.violations for one in outcomes)
    line = f"{outcomes[0].kills:,} kills, {violations} violations; {each}"
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
