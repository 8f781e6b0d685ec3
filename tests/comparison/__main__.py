"""python -m tests.comparison: fail each operation of each workload once, or one of them again."""

from __future__ import annotations

import argparse
import sys
import time

from tests.comparison import fleet, page
from tests.comparison.all import ALL
from tests.comparison.draw import Single, Tally
from tests.comparison.run import compare, refer


def main() -> int:
    """Return 0 if everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.comparison")
    parser.add_argument("--nightly", action="store_true", help="write docs/reliability.md")
    parser.add_argument("--workload", help="only this one")
    parser.add_argument("single", nargs="*", help="one failure: its kind and its number")
    arguments = parser.parse_args()
    chosen = [each for each in ALL if arguments.workload in (None, each.name)]
    if arguments.single:
        failure, at = arguments.single
        compare(chosen[0], refer(chosen[0]), *Single(failure, int(at)))
        return 0
    start, tallies = time.monotonic(), list[Tally]()
    for tally in fleet.run([each.name for each in chosen]):
        tallies.append(tally)
        told = f"{tally.failures.total():,} failures, {len(tally.violations)} violations"
        print(f"{tally.name}: {told}", file=sys.stderr)
        for violation in tally.violations:
            print(violation, flush=True)
    if arguments.nightly:
        page.write(tallies, time.monotonic() - start)
    return min(1, sum(len(tally.violations) for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
