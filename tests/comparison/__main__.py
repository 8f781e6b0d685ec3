"""python -m tests.comparison: fail each operation of each workload once, or one of them again."""

from __future__ import annotations

import argparse
import math
import sys

from tests.comparison import page
from tests.comparison.all import ALL
from tests.comparison.done import Compared, all_parts, compared, comparing
from tests.comparison.draw import Single
from tests.comparison.run import compare, refer
from tests.crash.fleet import workers
from tests.done_parts import DonePart, workload_of


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
    parts, violated = compared(), 0
    wanted = [each for each in all_parts() if arguments.workload in (None, workload_of(each))]
    missing = [each for each in wanted if not parts.is_current(each)]
    for part in comparing().run(missing, workers(), arguments.minutes * 60):
        _tell(part)
        violated += len(part.result.violations)
        if arguments.nightly:
            parts.add(part)
            page.write(parts)
    return min(1, violated)


def _tell(part: DonePart[Compared]) -> None:
    violations = part.result.violations
    told = f"{part.result.failures:,} failures, {len(violations)} violations"
    print(f"{part.name}: {told}", file=sys.stderr)
    for violation in violations:
        print(violation, flush=True)


if __name__ == "__main__":
    sys.exit(main())
