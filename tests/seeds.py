"""Seeds of runs that are drawn: those of a day, and how to run one again."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

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
