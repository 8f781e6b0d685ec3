"""Progress of long work on stderr: a bar on a terminal, otherwise a line for each tenth.

Imports are such work, too: they take a second or two, and much longer on a busy machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Lock, get_ident
from types import FrameType

from mqlake.pace import noted
from mqlake.spark.waiting import progress_lines

Report = Callable[[str, int, int], None]
"""Receives the title of the work, the number of finished tasks, and the number of all tasks."""


START = "starting Spark"
LOADING = "loading kernels"
"""What `progress` may show before the first job, with Spark and without it."""

_IMPORTING, _OWN = "importlib._bootstrap", "mqlake"


@contextmanager
def progress(wanted: bool | None, begin: str | None = None) -> Generator[Report | None]:
    """Yield a function that shows progress; None if progress is not wanted.

    If `wanted` is None, progress is shown if stderr is a terminal. A bar disappears when the work
    ends.

    Args:
        begin: what is waited for until the function is called.
    """
    if not _is_shown(wanted):
        yield None
        return
    with _bar(begin) if sys.stderr.isatty() else _lines(begin) as report:
        yield report


def _is_shown(wanted: bool | None) -> bool:
    return sys.stderr.isatty() if wanted is None else wanted


def logged_loading(program: str) -> AbstractContextManager[None]:
    """Log the version of mqlake and the program that is loaded, and every 1.5 s that it still is.

    Args:
        program: what is loaded, such as "broker".
    """
    import logging

    from mqlake import __version__

    return progress_lines(
        f"mqlake {__version__}: loading the {program}", logging.getLogger(__name__).info
    )


@contextmanager
def reported_imports() -> Generator[None]:
    """Report every 1.5 s which package this thread imports, until it does something else.

    What else commands wait for, they report themselves. Nothing is reported without a terminal.
    """
    if not sys.stderr.isatty():
        yield
        return
    thread = get_ident()

    def note(seconds: float) -> bool:
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
        package = imported_package(frames.get(thread))
        if package is not None:
            sys.stderr.write(f"mqlake: loading {package}, {seconds:.0f} s\n")
            sys.stderr.flush()
        return package is not None

    with noted(note):
        yield


def imported_package(frame: FrameType | None) -> str | None:
    """Return the package that mqlake is importing, or mqlake itself; None if nothing is imported.

    Args:
        frame: the innermost frame of a stack.
    """
    found = None
    while frame is not None:
        if frame.f_globals.get("__name__") == _IMPORTING and "name" in frame.f_locals:
            package = str(frame.f_locals["name"]).partition(".")[0]
            if found is None or package != _OWN:
                found = package
        frame = frame.f_back
    return found


def tell_compilation() -> None:
    """Report on stderr that kernels are being compiled: at the first use, and for each one."""
    from mqlake.query.reading import compilation

    compilation.tell_compilation(lambda text: _write(f"mqlake: {text}"))


@contextmanager
def _bar(begin: str | None) -> Generator[Report]:
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
        if begin is not None:
            steps[begin] = bar.add_task(begin, total=None)

        def report(title: str, done: int, total: int) -> None:
            if begin in steps:
                bar.remove_task(steps.pop(begin))
            if title not in steps:
                steps[title] = bar.add_task(title, total=total)
            bar.update(steps[title], completed=done, total=total)

        yield report


@contextmanager
def _lines(begin: str | None) -> Generator[Report]:
    """Yield a function that writes a line for each tenth, and every 1.5 s before the first one."""
    tenths: dict[str, int] = {}
    reporting = Lock()
    with ExitStack() as waiting:
        if begin is not None:
            waiting.enter_context(progress_lines(begin))

        def report(title: str, done: int, total: int) -> None:
            with reporting:
                tenth = 10 * done // max(1, total)
                if tenths.get(title) == tenth:
                    return
                tenths[title] = tenth
                waiting.close()
                line = f"{title}: {done} of {total}"
                if done:
                    _write(line)
                else:
                    waiting.enter_context(progress_lines(line, _write))

        yield report


def _write(line: str) -> None:
    sys.stderr.write(f"{line}\n")
