"""Runs that are drawn from seeds: those of a day, their command line, how to run one again."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

SPACING = 1_000_000
"""Seeds between two days."""
_DAY = 86_400


def first_seed(given: int | None) -> int:
    """Return the first seed of a program: the one that was given, or the day's."""
    return int(time.time() // _DAY) * SPACING if given is None else given


def tell_violations(violations: Sequence[str], again: str) -> None:
    """Write what a run violated, and the command that runs it again, to stderr."""
    if violations:
        print("\n".join(violations), file=sys.stderr)
        print(f"run it again: {again}", file=sys.stderr)


class Violated(Protocol):
    """What came of a run."""

    @property
    def violations(self) -> Sequence[str]: ...


Outcome = TypeVar("Outcome", bound=Violated)


def main(
    program: str,
    unit: str,
    run: Callable[[int, int, Callable[[int], None]], Outcome],
    write: Callable[[Outcome, int, float], None],
    *,
    count: int = SPACING,
) -> int:
    """Run a number of seeds, as the command line says; return 0 if everything held, else 1.

    Args:
        program: how it is started, as in "tests.auth.forgeries".
        unit: what is counted.
        run: runs so many seeds from a first one on, and says how many are done.
        write: writes the section of docs/reliability.md: of what came of it, the first seed, and
            the seconds.
        count: how many there are as a rule.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}")
    parser.add_argument("--nightly", action="store_true", help="write docs/reliability.md")
    parser.add_argument("--count", type=int, default=count, help=f"{unit} in all")
    parser.add_argument("--seed", type=int, help="another one each day without it")
    arguments = parser.parse_args()
    seed, start = first_seed(arguments.seed), time.monotonic()
    outcome = run(arguments.count, seed, _tell)
    seconds = time.monotonic() - start
    if arguments.nightly:
        write(outcome, seed, seconds)
    tell_violations(outcome.violations[:20], f"python -m {program} --count 1 --seed N")
    print(f"{arguments.count:,} {unit}, {len(outcome.violations)} violations, {seconds:.0f} s")
    return 1 if outcome.violations else 0


def _tell(done: int) -> None:
    print(f"\r{done:,} ", end="", file=sys.stderr, flush=True)
