"""Measure the pieces of work between which an event loop may serve others.

A piece ends with a callback of the loop, and with a step of a job in slices (`remoting/slices.py`):
there, others may be served. A piece is measured in processor time of the thread, and compared with
a fixed piece of work that is measured in the same process, so that a slow machine changes nothing.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import thread_time
from typing import Any, NamedTuple

from mqlake.remoting.slices import Job, Slices

BUDGET = 0.005
"""Seconds that one piece may take on a machine that does the fixed work in `FIXED` seconds."""
FIXED = 0.005
_ENTRIES = 3000
FIXED_WORK = f"a table of {_ENTRIES:,} entries is made, written as JSON, read and sorted"
_TINY = 0.0002
"""Seconds below which it is not noted where a piece of work is."""


class Piece(NamedTuple):
    """An uninterrupted piece of work: how long it took, in seconds, and where it ended."""

    seconds: float
    where: str


class Meter:
    """Finds the longest piece of work since it was last asked.

    Only one at a time, since it replaces functions of asyncio and of the slices.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._longest = Piece(0.0, "")
        self._total = 0.0

    @contextmanager
    def installed(self) -> Generator[None]:
        """Measure callbacks and jobs within the block. No cyclic garbage is collected meanwhile:
        servers collect it while they are idle (`programs/garbage.py`).
        """
        run, serve = asyncio.Handle._run, Slices.serve
        start, finish = Slices.start, Slices.finish
        meter = self

        def run_measured(handle: asyncio.Handle) -> None:
            meter.begin()
            try:
                run(handle)
            finally:
                meter.end(lambda: _callback(handle))

        def serve_measured(slices: Slices, peer: Any, job: Job[Any], **others: Any) -> Any:
            return serve(slices, peer, meter._measured(job), **others)

        def start_measured(slices: Slices, job: Job[object]) -> None:
            start(slices, meter._measured(job))

        async def finish_measured(slices: Slices, job: Job[Any]) -> Any:
            return await finish(slices, meter._measured(job))

        patched: list[tuple[Any, str, Any, Any]] = [
            (asyncio.Handle, "_run", run_measured, run),
            (Slices, "serve", serve_measured, serve),
            (Slices, "start", start_measured, start),
            (Slices, "finish", finish_measured, finish),
        ]
        gc.collect()
        gc.disable()
        try:
            for owner, name, function, _ in patched:
                setattr(owner, name, function)
            yield
        finally:
            for owner, name, _, function in patched:
                setattr(owner, name, function)
            gc.enable()

    def begin(self) -> None:
        """Begin a piece of work."""
        self._since = thread_time()

    def end(self, where: Callable[[], str]) -> None:
        """End the piece of work that runs, if one does."""
        if self._since is None:
            return
        seconds, self._since = thread_time() - self._since, None
        self._total += seconds
        if seconds > max(self._longest.seconds, _TINY):
            self._longest = Piece(seconds, where())

    def mute(self) -> None:
        """Forget the piece that runs: it is the test's own."""
        self._since = None

    def take(self) -> tuple[Piece, float]:
        """Return the longest piece since the last call, and the seconds of all of them."""
        found = self._longest, self._total
        self._longest, self._total = Piece(0.0, ""), 0.0
        return found

    def _measured(self, job: Job[Any]) -> Job[Any]:
        try:
            while True:
                try:
                    next(job)
                except StopIteration as stop:
                    return stop.value
                if self._since is not None:
                    self.end(lambda: _place(job))
                    self.begin()
                yield
                if self._since is not None:
                    self.begin()
        finally:
            job.close()


def _callback(handle: Any) -> str:
    """Return the function that a handle calls; of a task, where it waits now."""
    task = getattr(handle._callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return repr(handle)
    coroutine: Any = task.get_coro()
    while getattr(coroutine.cr_await, "cr_frame", None) is not None:
        coroutine = coroutine.cr_await
    frame = coroutine.cr_frame
    return f"{coroutine.__qualname__}, line {frame.f_lineno if frame else 'last'}"


def _place(job: Any) -> str:
    """Return the function and the line at which a job has stopped."""
    while True:
        inner = getattr(job, "gi_yieldfrom", None)
        if inner is None or not hasattr(inner, "gi_frame"):
            break
        job = inner
    code, frame = job.gi_code, job.gi_frame
    file, line = code.co_filename.rpartition("/src/")[2], frame.f_lineno if frame else "?"
    return f"{file}:{line} {code.co_qualname}"


def scale() -> float:
    """Return how many times as long as intended this machine takes for a fixed piece of work, at
    least 1.
    """
    return max(1.0, min(_fixed_work() for _ in range(7)) / FIXED)


def _fixed_work() -> float:
    begin = thread_time()
    table = {f"T{number}": {"name": f"T{number}", "queues": number} for number in range(_ENTRIES)}
    text = json.dumps(table)
    found = json.loads(text)
    assert sorted(found) == sorted(table)
    return thread_time() - begin
