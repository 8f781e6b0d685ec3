"""Progress of long work on stderr: a bar on a terminal, otherwise a line for each tenth.

Imports are such work, too: they take a second or two, and much longer on a busy machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from threading import Lock, get_ident
from types import FrameType
from typing import TYPE_CHECKING

from mqlake import pace
from mqlake.cli.text import printable
from mqlake.pace import noted
from mqlake.spark.waiting import progress_lines
from mqlake.storage.clock import SystemClock

if TYPE_CHECKING:
    from mqlake.client.awaited_servers import AwaitedServers
    from mqlake.storage.clock import Clock

Report = Callable[[str, int, int], None]
"""Receives the title of the work, the number of finished tasks, and the number of all tasks."""


START = "starting Spark"
LOADING = "loading kernels"
"""What `progress` may show before the first job, with Spark and without it."""

_LOOKS = 3
"""How often awaited servers are looked at in `PACE` seconds."""
SHORTEST = 0.5
"""Seconds: a shorter wait is not the reason why a command is silent, unless it only asks servers,
one after another.
"""
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


class AwaitedReport:
    """Reports which servers a command waits for, once nothing was reported for a while.

    Args:
        servers: what the command's clients wait for.
        tell: gets each line.
        shortest: the seconds after which a wait is reported.
        spoke: returns when the command last reported something else, on the same clock.
    """

    def __init__(
        self,
        servers: AwaitedServers,
        tell: Callable[[str], object],
        clock: Clock,
        shortest: float = SHORTEST,
        spoke: Callable[[], float] | None = None,
    ) -> None:
        self._servers, self._tell, self._clock = servers, tell, clock
        self._shortest = shortest
        self._told = clock.monotonic()
        self._spoke = spoke or (lambda: self._told)

    def look(self) -> None:
        """Report the awaited servers, if it is time."""
        now = self._clock.monotonic()
        waits = self._servers.seconds()
        longest = max(waits.values(), default=0.0)
        silent = now - max(self._told, self._spoke())
        if longest < self._shortest or silent < pace.PACE * (1 - 0.5 / _LOOKS):
            return
        self._told = now
        first, *others = waits
        more = f" and {len(others)} more" if others else ""
        self._tell(f"waiting for {first}{more}, {longest:.0f} s")


@contextmanager
def reported_servers(
    wanted: bool | None = None,
    tell: Callable[[str], object] | None = None,
    *,
    shortest: float = SHORTEST,
    spoke: Callable[[], float] | None = None,
) -> Generator[None]:
    """Report which servers the block waits for, if it would otherwise be silent for 2 s.

    It is about clients that are created in the block.

    Args:
        wanted: whether to report; None reports if stderr is a terminal.
        tell: gets each line; by default, it is written to stderr.
        shortest: the seconds after which a wait is reported.
        spoke: returns when the command last reported something else, on the system's clock.
    """
    if not _is_shown(wanted):
        yield
        return
    from mqlake.client.awaited_servers import watched_servers

    clock = SystemClock()
    with watched_servers(clock) as servers:
        report = AwaitedReport(servers, tell or _tell, clock, shortest, spoke)
        with noted(lambda _: report.look(), _LOOKS):
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


@contextmanager
def reported_reading(place: object) -> Generator[None]:
    """Report every 1.5 s that a place is read, until the block ends, if stderr is a terminal."""
    what = f"reading {printable(str(place))}"
    with noted(lambda s: _tell(f"{what}, {s:.0f} s")) if _is_shown(None) else nullcontext():
        yield


def tell_compilation() -> None:
    """Report on stderr that kernels are being compiled: at the first use, and for each one."""
    from mqlake.query.reading import compilation

    compilation.tell_compilation(_tell)


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


def _tell(line: str) -> None:
    _write(f"mqlake: {line}")


def _write(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
