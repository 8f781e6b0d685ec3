"""Long work that a page starts: each runs in a process of its own, one at a time.

A job is a command of mqlake with `--json --progress`. Its process runs at a low priority, so that
a broker on the same machine is not slowed down, and is killed if the job is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from mqlake.errors import JobError
from mqlake.storage.clock import Clock, SystemClock

_PROGRAM = "mqlake.console.bound_process"
"""mqlake, as a process that ends with the console."""
_KEPT = 5
"""Jobs whose results are kept."""
_MOST_OUTPUT = 16 << 20
_MOST_LINE = 1 << 16
_MOST_LINES = 20
_PROGRESS = re.compile(r"(.{1,200}): ([0-9]{1,12}) of ([0-9]{1,12})")
_KILLED_WITH = signal.SIGKILL


class JobState(StrEnum):
    """How far a job is."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass
class BackgroundJob:
    """A job.

    Attributes:
        subject: what it works on, such as a store directory.
        command: the command that does the same.
        started, ended: milliseconds since 1970; `ended` is None while it runs.
        step: the title of the current step; `done` of `total` parts of it are finished.
        result: the JSON that it printed; None before that, or if it failed.
        error: why it failed.
    """

    number: int
    kind: str
    subject: str
    command: Sequence[str]
    started: int
    state: JobState = JobState.RUNNING
    ended: int | None = None
    step: str = "starting"
    done: int = 0
    total: int = 0
    result: Any = None
    error: str | None = None
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_LINES))

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.state is JobState.RUNNING

    @property
    def percent(self) -> int:
        """Return how much of the current step is done."""
        return self.done * 100 // self.total if self.total > 0 else 0

    def read_line(self, line: str) -> None:
        """Note a line that the job wrote to stderr."""
        if found := _PROGRESS.fullmatch(line):
            self.step, self.done, self.total = found[1], int(found[2]), int(found[3])
        elif line:
            self.lines.append(line)


class BackgroundJobs:
    """Runs jobs, one at a time. For one event loop."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._numbers = itertools.count(1)
        self._jobs: deque[BackgroundJob] = deque(maxlen=_KEPT)
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def all(self) -> list[BackgroundJob]:
        """The jobs, newest first."""
        return list(reversed(self._jobs))

    @property
    def running(self) -> BackgroundJob | None:
        """The job that runs."""
        return next((job for job in self._jobs if job.is_running), None)

    @property
    def process_id(self) -> int | None:
        """The process of the job that runs; None before it is started."""
        return None if self._process is None else self._process.pid

    def job(self, number: int) -> BackgroundJob | None:
        """Return a job by its number; None if it does not exist, or is no longer kept."""
        return next((job for job in self._jobs if job.number == number), None)

    def last(self, kind: str, subject: str) -> BackgroundJob | None:
        """Return the newest job of a kind on a subject."""
        found = (job for job in reversed(self._jobs) if (job.kind, job.subject) == (kind, subject))
        return next(found, None)

    def start(self, kind: str, subject: str, arguments: Sequence[str]) -> BackgroundJob:
        """Start a job.

        Args:
            arguments: of `mqlake`; the job adds `--json --progress`.

        Raises:
            JobError: another job runs.
        """
        if (running := self.running) is not None:
            raise JobError(
                f"{running.kind} of {running.subject} is running: wait until it ends, or cancel it"
            )
        now = self._clock.milliseconds()
        job = BackgroundJob(next(self._numbers), kind, subject, ("mqlake", *arguments), now)
        self._jobs.append(job)
        self._task = asyncio.create_task(self._run(job, arguments))
        # A task that is cancelled before it has begun runs none of its code.
        self._task.add_done_callback(lambda _: self._note_end(job, JobState.CANCELLED))
        return job

    def cancel(self, number: int) -> BackgroundJob:
        """Cancel a job. Its state says so once its process has ended.

        Raises:
            JobError: the job does not run.
        """
        job = self.job(number)
        if job is None or not job.is_running or self._task is None:
            raise JobError(f"job {number} is not running")
        self._task.cancel()
        return job

    async def wait(self) -> None:
        """Wait until no job runs."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Cancel the job that runs, and wait until its process has ended."""
        if (job := self.running) is not None:
            self.cancel(job.number)
        await self.wait()

    async def _run(self, job: BackgroundJob, arguments: Sequence[str]) -> None:
        try:
            await self._work(job, arguments)
            state = JobState.DONE if job.error is None else JobState.FAILED
        except asyncio.CancelledError:
            state = JobState.CANCELLED
        except Exception as error:  # noqa: BLE001  whatever it is, the job has ended
            job.error, state = f"{type(error).__name__}: {error}", JobState.FAILED
        self._note_end(job, state)

    def _note_end(self, job: BackgroundJob, state: JobState) -> None:
        if job.is_running:
            job.state, job.ended = state, self._clock.milliseconds()

    async def _work(self, job: BackgroundJob, arguments: Sequence[str]) -> None:
        program = [sys.executable, "-m", _PROGRAM, str(os.getpid())]
        command = [*program, *arguments, "--json", "--progress"]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            limit=_MOST_LINE,
            start_new_session=True,
        )
        self._process = process
        _lower_priority(process.pid)
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            output, _ = await asyncio.gather(
                _read_output(process.stdout), _read_lines(job, process.stderr)
            )
            code = await process.wait()
        finally:
            await _end(process)
            self._process = None
        try:
            job.result = await asyncio.to_thread(msgspec.json.decode, output)
        except msgspec.DecodeError:
            said = job.lines[-1] if job.lines else "it printed no result"
            job.error = f"the process ended with code {code}: {said}"


async def _read_output(stream: asyncio.StreamReader) -> bytes:
    """Return what a job prints; the pipe is read to its end, so that the job never waits."""
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(_MOST_LINE):
        size += len(part)
        if size <= _MOST_OUTPUT:
            parts.append(part)
    if size > _MOST_OUTPUT:
        raise JobError(f"the result has {size} bytes; the maximum is {_MOST_OUTPUT}")
    return b"".join(parts)


async def _read_lines(job: BackgroundJob, stream: asyncio.StreamReader) -> None:
    rest = b""
    while part := await stream.read(_MOST_LINE):
        *whole, rest = (rest + part).split(b"\n")
        rest = rest[:_MOST_LINE]
        for line in whole:
            job.read_line(line[:_MOST_LINE].decode("utf-8", "replace").strip())
    job.read_line(rest.decode("utf-8", "replace").strip())


def _lower_priority(process: int) -> None:
    # The process may have ended already.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, 15)


async def _end(process: Process) -> None:
    """Kill a process and its children, and wait for it."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, _KILLED_WITH)
        await process.wait()
