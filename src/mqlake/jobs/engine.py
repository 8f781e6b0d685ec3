"""What a job requires of an engine: threads in this package, Spark in another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

J = TypeVar("J")
R = TypeVar("R")


class Engine(Protocol):
    """Runs tasks, several at the same time.

    A task is a module-level function of one picklable argument with a picklable result. An engine
    may run it again after a failed attempt, even beside an attempt that is still running: tasks
    write at fixed positions or to unique names, so that any number of attempts leaves the same
    bytes.
    """

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at the same time."""
        ...

    def run(self, task: Callable[[J], R], jobs: Sequence[J], title: str) -> list[R]:
        """Run `task` on each of `jobs`; the results come in the order of the jobs.

        `title` is what progress shows. A task's `MqlakeError` reaches the caller as a
        `MqlakeError` with the same message; any other failure ends the whole run.
        """
        ...
