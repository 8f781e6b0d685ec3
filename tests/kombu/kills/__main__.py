"""python -m tests.kombu.kills: kill Celery workers and their broker, as drawn from seeds."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec

if find_spec("celery") is None:
    sys.exit("tests.kombu.kills needs Celery: pip install 'mqlake[celery]'")

from tests.kombu.kills import page
from tests.kombu.kills.run import KILLS, Outcome, command, run
from tests.seeds import first_seed, tell_violations

NIGHTLY = 10
"""Runs of a night."""


def main() -> int:
    """Return 0 if everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.kombu.kills")
    parser.add_argument(
        "--nightly",
        action="store_true",
        help=f"{NIGHTLY} seeds; writes docs/reliability.md",
    )
    parser.add_argument("--runs", type=int, help=f"number of seeds, each of {KILLS} kills")
    parser.add_argument("--seed", type=int, help="the first seed; by default the day's")
    arguments = parser.parse_args()
    first = first_seed(arguments.seed)
    outcomes: list[Outcome] = []
    for seed in range(first, first + (arguments.runs or (NIGHTLY if arguments.nightly else 1))):
        outcomes.append(run(seed))
        _tell(outcomes[-1])
    if arguments.nightly:
        page.write(outcomes)
    kills = sum(outcome.kills.total() for outcome in outcomes)
    violations = sum(len(outcome.violations) for outcome in outcomes)
    print(f"{kills} kills, {violations} violations")
    return 1 if violations else 0


def _tell(outcome: Outcome) -> None:
    print(
        f"seed {outcome.seed}: {outcome.kills.total()} kills, {outcome.returned} tasks,"
        f" {outcome.failed} refused, {outcome.runs} runs, {outcome.duplicates} of them again,"
        f" drained in {outcome.drained:.1f} s, {len(outcome.violations)} violations",
        flush=True,
    )
    tell_violations(outcome.violations, command(outcome.seed))


if __name__ == "__main__":
    sys.exit(main())
