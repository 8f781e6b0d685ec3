"""python -m tests.client.faults: run clients under faults that are drawn from seeds."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from mqlake.broker.lane import kernel as lane
from mqlake.broker.lane import pull_kernel
from mqlake.dispatch import warm_up as dispatch_kernels
from tests.client.faults import page
from tests.client.faults.run import Outcome, command, run
from tests.seeds import first_seed, tell_violations

NIGHTLY = 200


def main() -> int:
    """Return 0 if everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.client.faults")
    parser.add_argument(
        "--nightly", action="store_true", help=f"{NIGHTLY} runs; writes docs/reliability.md"
    )
    parser.add_argument("--runs", type=int, help="number of seeds, from the first one on")
    parser.add_argument("--seed", type=int, help="the first seed; by default the day's")
    parser.add_argument("--jobs", type=int, default=4, help="runs side by side: they mostly wait")
    arguments = parser.parse_args()
    first = first_seed(arguments.seed)
    runs = arguments.runs or (NIGHTLY if arguments.nightly else 1)
    outcomes: list[Outcome] = []
    # A broker that compiles kernels does nothing else for seconds, which looks like a fault.
    dispatch_kernels.load(export=False)
    pull_kernel.call_each()
    lane.load()
    with ProcessPoolExecutor(min(arguments.jobs, runs)) as pool:
        for outcome in pool.map(run, range(first, first + runs)):
            outcomes.append(outcome)
            _tell(outcome)
    if arguments.nightly:
        page.write(outcomes)
    violations = sum(len(outcome.violations) for outcome in outcomes)
    print(f"{len(outcomes)} runs, {violations} violations")
    return 1 if violations else 0


def _tell(outcome: Outcome) -> None:
    duplicates = ", ".join(f"{count} {cause}" for cause, count in outcome.duplicates.items())
    print(
        f"seed {outcome.seed}: {outcome.acknowledged} acknowledged,"
        f" {outcome.deliveries} delivered (again: {duplicates or 'none'}),"
        f" drained in {outcome.drained:.1f} s, {len(outcome.violations)} violations",
        flush=True,
    )
    tell_violations(outcome.violations, command(outcome.seed))


if __name__ == "__main__":
    sys.exit(main())
