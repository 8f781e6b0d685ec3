"""python -m tests.crash: crash the live store, or show one crash again."""

from __future__ import annotations

import argparse
import math
import sys
import time

from tests.crash import fleet, long_runs, page
from tests.crash.done import NIGHTLY, Crashed, crashed, crashing, missing
from tests.crash.simulator import Plan, Simulator
from tests.crash.workloads import ALL, find
from tests.done_parts import DonePart

DAY = 86_400
PROOFS = ("images", "faults", "kills")


def main() -> int:
    """Return 0 where everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument(
        "--nightly",
        action="store_true",
        help="a million images, all faults, 200 kills; writes docs/reliability.md",
    )
    parser.add_argument("--only", choices=PROOFS, help="with --nightly, only one of the three")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="begin no more images after them"
    )
    parser.add_argument("--images", type=int, default=NIGHTLY, help="distinct images in all")
    parser.add_argument("--seed", type=int, help="the first of four; by default the day's")
    parser.add_argument("--workload", help="only this one, with one seed: a name, or drawn-N")
    parser.add_argument("--image", help="only this one of the workload's images")
    arguments = parser.parse_args()
    seed = int(time.time() // DAY) if arguments.seed is None else arguments.seed
    print(f"seed {seed}")
    fleet.quieten()
    if arguments.workload:
        wanted = NIGHTLY // len(ALL) if arguments.images == NIGHTLY else arguments.images
        return _one(arguments.workload, Plan(seed, wanted, fleet.AGAIN, only=arguments.image))
    if not arguments.nightly:
        parser.error("either --nightly or --workload")
    proofs, violated = (arguments.only,) if arguments.only else PROOFS, 0
    if "images" in proofs:
        violated += _crash(seed, arguments.images, arguments.minutes)
    if "faults" in proofs:
        violated += long_runs.run_and_write_faults(_progress)
    if "kills" in proofs:
        violated += long_runs.run_and_write_kills(seed, _progress)
    return min(1, violated)


def _one(name: str, plan: Plan) -> int:
    outcome = Simulator(find(name), plan).run()
    for violation in outcome.violations:
        print(violation.describe())
    print(f"{outcome.distinct:,} images, {outcome.violated} violations")
    return min(1, outcome.violated)


def _crash(seed: int, images: int, minutes: float) -> int:
    """Crash what was not crashed with the code as it is; return how much was violated."""
    parts = crashed()
    wanted = missing(parts, seed, images)
    for part in crashing().run(wanted, fleet.workers(), minutes * 60):
        parts.add(part)
        page.write(parts)
        _tell(part, sum(each.result.distinct for each in parts.current()))
    current = parts.current()
    violated = sum(part.result.violated for part in current)
    print(f"{sum(part.result.distinct for part in current):,} images, {violated} violations")
    return violated


def _tell(part: DonePart[Crashed], total: int) -> None:
    result = part.result
    _progress(
        f"{total:,} images; {part.name}: {result.distinct:,}, {result.violated} violations",
        *result.violations,
    )


def _progress(*lines: str) -> None:
    print(*lines, sep="\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
