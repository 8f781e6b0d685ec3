"""python -m tests.comparison: fail each operation of each workload once, or one of them again."""

from __future__ import annotations

import argparse
import math
import sys

from tests.comparison import fleet, page
from tests.comparison.all import ALL
from tests.comparison.done import Compared, Done
from tests.comparison.draw import Single
from tests.comparison.run import compare, refer


def main() -> int:
    """Return 0 if everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.comparison")
    parser.add_argument(
        "--nightly",
        action="store_true",
        help="compare what has changed since it was compared last; writes docs/reliability.md",
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing after them")
    parser.add_argument("--workload", help="only this one")
    parser.add_argument("single", nargs="*", help="one failure: its kind and its number")
    arguments = parser.parse_args()
    if arguments.single:
        chosen = next(each for each in ALL if each.name == arguments.workload)
        failure, at = arguments.single
        compare(chosen, refer(chosen), *Single(failure, int(at)))
        return 0
    done = Done()
    names = frozenset({arguments.workload}) if arguments.workload else None
    violated = 0
    for compared in fleet.run(done.missing(names), arguments.minutes * 60):
        _tell(compared)
        violated += len(compared.violations)
        if arguments.nightly:
            done.add(compared)
            page.write(done)
    return min(1, violated)


def _tell(compared: Compared) -> None:
    told = f"{compared.failures:,} failures, {len(compared.violations)} violations"
    print(f"{compared.workload} {compared.failure}: {told}", file=sys.stderr)
    for violation in compared.violations:
        print(violation, flush=True)


if __name__ == "__main__":
    sys.exit(main())
