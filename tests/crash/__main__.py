"""python -m tests.crash: crash the live store, or show one crash again."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.crash import fleet, page
from tests.crash.simulator import Outcome, Plan, Simulator
from tests.crash.workloads import WORKLOADS

NIGHTLY = 1_000_000
DAY = 86_400


def main() -> int:
    """Return 0 where everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument(
        "--nightly", action="store_true", help="a million images; writes docs/reliability.md"
    )
    parser.add_argument("--images", type=int, default=NIGHTLY, help="distinct images in all")
    parser.add_argument("--seed", type=int, help="another one each day without it")
    parser.add_argument("--workload", choices=WORKLOADS, help="only this one")
    parser.add_argument("--image", help="only this one of the workload's images")
    arguments = parser.parse_args()
    seed = int(time.time() // DAY) if arguments.seed is None else arguments.seed
    if arguments.image:
        if not arguments.workload:
            parser.error("--image needs --workload")
        plan = Plan(seed, only=arguments.image)
        return _tell([Simulator(WORKLOADS[arguments.workload], plan).run()])
    names = [arguments.workload] if arguments.workload else list(WORKLOADS)
    start = time.monotonic()
    outcomes = fleet.run(names, arguments.images, seed, _progress)
    if arguments.nightly:
        page.write(outcomes, seed, time.monotonic() - start)
    print(f"seed {seed}")
    return _tell(outcomes)


def _progress(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        print(
            f"{outcome.name}: {outcome.distinct:,} images of {outcome.images:,} crashes,"
            f" {outcome.violated} violations",
            file=sys.stderr,
        )


def _tell(outcomes: Sequence[Outcome]) -> int:
    for outcome in outcomes:
        for violation in outcome.violations:
            print(violation.describe())
    violated = sum(outcome.violated for outcome in outcomes)
    print(f"{sum(outcome.distinct for outcome in outcomes):,} images, {violated} violations")
    return 1 if violated else 0


if __name__ == "__main__":
    sys.exit(main())
