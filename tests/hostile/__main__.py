"""python -m tests.hostile: run hostile inputs, or one case again."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback

from tests.hostile import fleet, page
from tests.hostile.cases import Case
from tests.hostile.targets import TARGETS

NIGHTLY = 7_010_000
"""Five million for the network, a million for each kind of store: the targets' shares say so."""
DAY = 86_400


def main() -> int:
    """Return 0 where everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile")
    parser.add_argument(
        "--nightly",
        action="store_true",
        help="run seven million inputs and write docs/reliability.md",
    )
    parser.add_argument("--count", type=int, help="inputs in all")
    parser.add_argument("--seed", type=int, help="another one each day without it")
    parser.add_argument("--target", choices=TARGETS, help="only this one; with --seed, one case")
    arguments = parser.parse_args()
    seed = int(time.time() // DAY) * 10**12 if arguments.seed is None else arguments.seed
    if arguments.target and arguments.seed is not None and not arguments.count:
        return _replay(arguments.target, seed)
    return _run(arguments.count or NIGHTLY, seed, arguments.target, write=arguments.nightly)


def _replay(name: str, seed: int) -> int:
    if TARGETS[name].bounds_checked:
        os.environ["MQLAKE_BOUNDSCHECK"] = "1"
    case = Case.of(name, seed)
    try:
        TARGETS[name].run(case)
    except Exception:  # noqa: BLE001 (whatever it is, it is what we look for)
        traceback.print_exc()
        print("\n".join(case.story))
        return 1
    print(f"{case.inputs} inputs, all held")
    return 0


def _run(count: int, seed: int, target: str | None, *, write: bool) -> int:
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    names = [target] if target else list(TARGETS)
    start = time.monotonic()

    def progress(done: int) -> None:
        rate = done / (time.monotonic() - start)
        print(f"\r{done:,} of {count:,} inputs, {rate:,.0f}/s ", end="", file=sys.stderr)

    tallies = fleet.run(fleet.share_out(count, seed, workers, names), workers, progress)
    print(file=sys.stderr)
    seconds = time.monotonic() - start
    failures = [failure for tally in tallies.values() for failure in tally.failures]
    for failure in failures:
        print(fleet.describe(failure), file=sys.stderr)
    if write:
        page.write(tallies, seed, seconds, workers)
    print(f"{sum(tally.inputs for tally in tallies.values()):,} inputs, {len(failures)} violations")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
