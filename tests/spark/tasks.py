"""Small tasks for the engines. Workers import this module by name."""

from __future__ import annotations

import hashlib
import importlib
import os
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqlake.errors import StoreError

PIECE = 1000
"""Bytes that `write_piece` writes."""
PATIENCE = 60.0
"""Seconds for which a task waits for others."""


def double(number: int) -> int:
    return 2 * number


def meet(job: tuple[str, int]) -> tuple[str, int]:
    """Return which process this is, once so many tasks are in a directory at the same time."""
    directory, count = Path(job[0]), job[1]
    (directory / uuid.uuid4().hex).touch()
    _wait(lambda: len(list(directory.iterdir())) >= count)
    return socket.gethostname(), os.getpid()


def pass_gate(path: str) -> None:
    """Wait until there is a file of this name; without a name, return at once."""
    _wait(lambda: not path or Path(path).exists())


def stay(mark: str) -> None:
    """Leave a file, so that somebody can see that the task runs; do not end."""
    Path(mark).touch()
    time.sleep(600)


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def refuse(number: int) -> int:
    """Fail as a task does that finds the store unusable; succeed for even numbers."""
    if number % 2:
        raise StoreError(f"commitlog/{number}: cannot be read\nor so it seems")
    return number


def break_down(number: int) -> float:
    return 1 / number


def write_piece(job: tuple[str, int, str]) -> int:
    """Write piece n of a file; where a third value names a mark, die half-way the first time."""
    path, number, mark = job
    piece = bytes([number]) * PIECE
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(file, piece[: PIECE // 2], number * PIECE)
        if mark and not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        os.pwrite(file, piece, number * PIECE)
    finally:
        os.close(file)
    return len(piece)


def environment(name: str) -> str | None:
    return os.environ.get(name)


def place_of(module: str) -> str | None:
    """Return the file that a worker imports a module from."""
    return importlib.import_module(module).__file__


def loaded(module: str) -> bool:
    """Say whether the worker has a module without the task importing it."""
    import sys

    return module in sys.modules


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def compiled_here(numbers: tuple[int, int]) -> tuple[int, str, str]:
    """Compile a kernel and call it; say where the package and the kernel's cache lie."""
    from mqlake.kernels import jit

    total = jit.kernel(add)(*numbers)
    return total, str(Path(jit.__file__).parents[1]), str(jit.CACHE)


def add(left: int, right: int) -> int:
    return left + right


@dataclass(frozen=True)
class JobsAtGate:
    """A task for numbered jobs: those after the first two wait for a file of this name."""

    task: Callable[[Any], Any]
    gate: str

    def __call__(self, numbered: tuple[int, Any]) -> Any:
        number, job = numbered
        if number >= 2:
            pass_gate(self.gate)
        return self.task(job)


@dataclass(frozen=True)
class RowsAtGate:
    """Hands rows on; the tasks after the first two wait for a file of this name."""

    gate: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.partitionId() >= 2:
            pass_gate(self.gate)
        yield from batches


@dataclass(frozen=True)
class DieHalfway:
    """A task that is killed in the middle of a write when it is first tried with a job."""

    task: Callable[[Any], Any]
    marks: str

    def __call__(self, job: Any) -> Any:
        mark = Path(self.marks) / hashlib.sha256(repr(job).encode()).hexdigest()
        if not mark.exists():
            mark.touch()
            os.pwrite = _write_half_and_die  # this process ends with it
        return self.task(job)


def _write_half_and_die(descriptor: int, data: Any, offset: int) -> int:
    view = memoryview(data)
    os.lseek(descriptor, offset, os.SEEK_SET)
    os.write(descriptor, view[: len(view) // 2])
    os.kill(os.getpid(), signal.SIGKILL)
    return 0
