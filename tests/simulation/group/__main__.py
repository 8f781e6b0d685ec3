"""python -m tests.simulation.group: run groups of brokers in simulated time, with faults."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.seeds import first_seed
from tests.simulation import logs
from tests.simulation.group import page
from tests.simulation.group.plan import draw
from tests.simulation.group.run import run
from tests.simulation.group.total import Total, run_all

NIGHTLY = 100_000
_AT_ONCE = 50
"""Seeds that a process runs before it tells of them."""


def main() -> int:
    """Return 0 if everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.group")
    parser.add_argument(
        "--nightly", action="store_true", help=f"{NIGHTLY} runs; writes docs/reliability.md"
    )
    parser.add_argument("--runs", type=int, help="number of seeds, from the first one on")
    parser.add_argument("--seed", type=int, help="the first seed; by default the day's")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--log", action="store_true", help="one run, with its plan and its log")
    arguments = parser.parse_args()
    first = first_seed(arguments.seed)
    if arguments.log:
        logs.show()
        print(draw(first))
        print(outcome := run(first, logs=True))
        return 1 if outcome.violations else 0
    runs, begun = arguments.runs or (NIGHTLY if arguments.nightly else 1), time.monotonic()
    total = _run(first, runs, arguments.jobs)
    if arguments.nightly:
        page.write(total, first, (time.monotonic() - begun) / 60)
    print(
        f"{total.runs:,} runs from seed {first}, {total.rounds:,} faults,"
        f" {len(total.violations)} violations"
    )
    return 1 if total.violations else 0


def _run(first: int, runs: int, jobs: int) -> Total:
    """Run seeds in several processes, up to the first violation."""
    total, end = Total(), first + runs
    parts = [range(at, min(end, at + _AT_ONCE)) for at in range(first, end, _AT_ONCE)]
    with ProcessPoolExecutor(min(jobs, len(parts))) as pool:
        for part in pool.map(run_all, parts):
            total.merge(part)
            if total.violations:
                print("\n".join(total.violations), file=sys.stderr, flush=True)
                pool.shutdown(cancel_futures=True)
                break
            if total.runs % (20 * _AT_ONCE) == 0:
                print(f"{total.runs:,} runs, 0 violations", flush=True)
    return total


if __name__ == "__main__":
    sys.exit(main())
