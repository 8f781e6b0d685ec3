"""The parts of a long proof that are done: the next run has the others, and those that changed.

A part is done again once anything that it runs has changed (`proved_code`).
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tests.proved_code import code_of

R = TypeVar("R")


class DonePart(msgspec.Struct, Generic[R], frozen=True):
    """What came of a part, with which code, when, and how long it took.

    Attributes:
        code: the digest of what it ran.
    """

    name: str
    code: str
    day: str
    seconds: float
    result: R


class DoneParts(Generic[R]):
    """What earlier runs did, and what this one adds, in a file.

    Args:
        path: the file; it may not exist yet.
        result: the type of what comes of a part.
        module_of: the name of a part → the module of the tests that has what it runs.
    """

    def __init__(self, path: Path, result: type[R], module_of: Callable[[str], str]) -> None:
        self._path, self._module_of = path, module_of
        kind = list[DonePart[result]]  # pyright: ignore[reportInvalidTypeArguments]
        found = msgspec.json.decode(path.read_bytes(), type=kind) if path.exists() else []
        self._parts: dict[str, DonePart[R]] = {part.name: part for part in found}

    def is_current(self, name: str) -> bool:
        """Return whether a part was done with the code as it is."""
        part = self._parts.get(name)
        return part is not None and part.code == code_of(self._module_of(name))

    def __iter__(self) -> Iterator[DonePart[R]]:
        """Yield the parts that were done, sorted by name."""
        return iter(sorted(self._parts.values(), key=lambda part: part.name))

    def current(self) -> list[DonePart[R]]:
        """Return those that were done with the code as it is."""
        return [part for part in self if self.is_current(part.name)]

    def add(self, part: DonePart[R]) -> None:
        """Keep what came of a part, in the file too: a run may be ended at any time."""
        self._parts[part.name] = part
        lines = ",\n".join(msgspec.json.encode(each).decode() for each in self)
        self._path.write_text(f"[\n{lines}\n]\n")


class PartRun(Generic[R]):
    """Does parts in processes of their own.

    Args:
        work: does the part of a name; a function of a module.
        module_of: as for `DoneParts`.
        quieten: called first in each process.
    """

    def __init__(
        self, work: Callable[[str], R], module_of: Callable[[str], str], quieten: Callable[[], None]
    ) -> None:
        self._work, self._module_of, self._quieten = work, module_of, quieten

    def run(self, names: Iterable[str], workers: int, seconds: float) -> Iterator[DonePart[R]]:
        """Yield what came of each part as it ends; begin none after so many seconds."""
        context = multiprocessing.get_context("spawn")
        left, end = iter(names), time.monotonic() + seconds
        running: set[Future[DonePart[R]]] = set()
        with ProcessPoolExecutor(
            workers, context, initializer=self._quieten, max_tasks_per_child=8
        ) as pool:
            while True:
                while len(running) < workers and time.monotonic() < end:
                    if (name := next(left, None)) is None:
                        break
                    running.add(pool.submit(_do, self._work, name, self._module_of(name)))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (task.result() for task in done)


def _do(work: Callable[[str], R], name: str, module: str) -> DonePart[R]:
    begin, code = time.monotonic(), code_of(module)
    result = work(name)
    seconds = round(time.monotonic() - begin, 1)
    return DonePart(name, code, f"{datetime.now(UTC):%Y-%m-%d}", seconds, result)


def part_name(workload: str, what: object) -> str:
    """Return the name of a part of a workload."""
    return f"{workload} {what}"


def workload_of(part: str) -> str:
    """Return the workload of a part, by its name."""
    return part.partition(" ")[0]


def days_of(parts: Iterable[DonePart[R]]) -> str:
    """Return the first and the last day on which these were done."""
    days = sorted({part.day for part in parts})
    return " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "no day"
