"""Progress of long work on stderr: a bar on a terminal, otherwise a line for each tenth."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

Report = Callable[[str, int, int], None]
"""Receives the title of the work, the number of finished tasks, and the number of all tasks."""


@contextmanager
def progress(wanted: bool | None) -> Generator[Report | None]:
    """Yield a function that shows progress; None if progress is not wanted.

    If `wanted` is None, progress is shown if stderr is a terminal. A bar disappears when the work
    ends.
    """
    if not _is_shown(wanted):
        yield None
    elif sys.stderr.isatty():
        with _bar() as report:
            yield report
    else:
        yield _lines()


def tell_start(wanted: bool | None) -> None:
    """Report on stderr that Spark starts, if progress is wanted as for `progress`."""
    if _is_shown(wanted):
        sys.stderr.write("mqlake: starting Spark\n")


def _is_shown(wanted: bool | None) -> bool:
    return sys.stderr.isatty() if wanted is None else wanted


def tell_compilation() -> None:
    """Report on stderr that kernels are being compiled, unless they are already compiled."""
    from mqlake.kernels.first_use import tell_first_use

    tell_first_use(lambda text: sys.stderr.write(f"mqlake: {text}\n"))


@contextmanager
def _bar() -> Generator[Report]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
    )

    steps: dict[str, TaskID] = {}
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:

        def report(title: str, done: int, total: int) -> None:
            if title not in steps:
                steps[title] = bar.add_task(title, total=total)
            bar.update(steps[title], completed=done, total=total)

        yield report


def _lines() -> Report:
    tenths: dict[str, int] = {}

    def report(title: str, done: int, total: int) -> None:
        tenth = 10 * done // max(1, total)
        if tenths.get(title) != tenth:
            tenths[title] = tenth
            sys.stderr.write(f"{title}: {done} of {total}\n")

    return report
