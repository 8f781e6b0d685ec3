"""Progress of long work on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

Report = Callable[[str, int, int], None]
"""Takes (what is being done, tasks done, tasks in all)."""


@contextmanager
def progress(wanted: bool | None) -> Generator[Report | None]:
    """Give a function that shows progress, None where none is wanted.

    `wanted` None asks whether stderr is a terminal. The bar goes away when the work ends.
    """
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield None
        return

    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    steps: dict[str, TaskID] = {}

    with bar:

        def report(title: str, done: int, total: int) -> None:
            if title not in steps:
                steps[title] = bar.add_task(title, total=total)
            bar.update(steps[title], completed=done, total=total)

        yield report
