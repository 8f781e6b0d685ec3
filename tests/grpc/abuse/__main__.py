"""python -m tests.grpc.abuse: abuse a server of gRPC, or repeat one abuse."""

from __future__ import annotations

import argparse
import sys
import time

from tests.grpc.abuse import page
from tests.grpc.abuse.run import run
from tests.seeds import SPACING, first_seed, tell_violations

NIGHTLY = SPACING


def main() -> int:
    """Return 0 if everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.grpc.abuse")
    parser.add_argument("--nightly", action="store_true", help="write docs/reliability.md")
    parser.add_argument("--count", type=int, default=NIGHTLY, help="clients in all")
    parser.add_argument("--seed", type=int, help="another one each day without it")
    arguments = parser.parse_args()
    seed, start = first_seed(arguments.seed), time.monotonic()
    outcome = run(arguments.count, seed, _tell)
    seconds = time.monotonic() - start
    if arguments.nightly:
        page.write(outcome, seed, seconds)
    tell_violations(outcome.violations[:20], "python -m tests.grpc.abuse --count 1 --seed N")
    print(f"{arguments.count:,} clients, {len(outcome.violations)} violations, {seconds:.0f} s")
    return 1 if outcome.violations else 0


def _tell(done: int) -> None:
    print(f"\r{done:,} ", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
