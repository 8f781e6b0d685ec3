"""Report on stderr what a program waits for, so that nobody takes it for dead.

Spark says nothing for seconds while its JVM starts, and while it starts the Python processes that
plan and read a data source.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from mqlake.pace import noted

_CLEAR = "\x1b[K"
"""Clears a line from the cursor on: Spark's bar of a stage's progress may be there."""


@contextmanager
def progress_lines(what: str, tell: Callable[[str], object] | None = None) -> Generator[None]:
    """Report `what` at once, and then every 1.5 s with the seconds since, until the block ends.

    Args:
        tell: gets each line; by default, it is written to stderr.
    """
    tell = tell or _write
    tell(what)
    with noted(lambda seconds: tell(f"{what}, {seconds:.0f} s")):
        yield


def _write(line: str) -> None:
    end = _CLEAR if sys.stderr.isatty() else ""
    sys.stderr.write(f"mqlake: {line}{end}\n")
    sys.stderr.flush()
