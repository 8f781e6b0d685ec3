"""python -m tests.crash: crash the live store, or show one crash again."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.crash import fleet, long_runs, page
from tests.crash.simulator import Outcome, Plan, Simulator
from tests.crash.workloads import ALL, find

NIGHTLY = 1_000_000
SEEDS = 4
DAY = 86_400


def main() -> int:
    """Return 0 where everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument(
        "--nightly",
        action="store_true",
        help="a million images, all faults, 200 kills; writes docs/reliability.md",
    )
    parser.add_argument("--images", type=int, default=NIGHTLY, help="distinct images in all")
    parser.add_argument("--seed", type=int, help="the first seed; by default the day's")
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, help="number of seeds, from the first one on"
    )
    parser.add_argument("--workload", help="only this one: a name, or drawn-N")
    parser.add_argument("--image", help="only this one of the workload's images")
    arguments = parser.parse_args()
    if not arguments.image:
        fleet.quieten()
    seed = int(time.time() // DAY) if arguments.seed is None else arguments.seed
    print(f"seed {seed}")
    fleet.quieten()
    if arguments.workload:
        wanted = NIGHTLY // len(ALL) if arguments.images == NIGHTLY else arguments.images
        plan = Plan(seed, wanted, fleet.AGAIN, only=arguments.image)
        return _tell([Simulator(find(arguments.workload), plan).run()])
    if arguments.image:
        parser.error("--image needs --workload")
    start = time.monotonic()
    seeds = range(seed, seed + arguments.seeds)
    outcomes = fleet.run(arguments.images, seeds, _progress)
    violated = _tell(outcomes)
    if arguments.nightly:
        page.write(outcomes, seeds, time.monotonic() - start)
        violated = violated or long_runs.run(seed, lambda line: print(line, file=sys.stderr))
    return min(1, violated)


def _progress(outcome: Outcome, total: int) -> None:
    told = f"{outcome.name}: {outcome.distinct:,} images, {outcome.violated} violations"
    print(f"{total:,} images; {told}", file=sys.stderr)
    for violation in outcome.violations:
        print(violation.describe(), file=sys.stderr)


def _tell(outcomes: Sequence[Outcome]) -> int:
    for outcome in outcomes:
        for violation in outcome.violations:
            print(violation.describe())
    violated = sum(outcome.violated for outcome in outcomes)
    print(f"{sum(outcome.distinct for outcome in outcomes):,} images, {violated} violations")
    return 1 if violated else 0


if __name__ == "__main__":
    sys.exit(main())
