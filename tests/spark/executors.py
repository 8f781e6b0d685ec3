"""The executors of a cluster: what they have done, and the death of one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from mqlake.spark.classic import ClassicSession
from tests.spark.servers import Cluster

TASKS = 12
"""Tasks of a job in which an executor dies: more than can end while the gate is closed."""
PATIENCE = 120
"""Seconds until an executor is there, or a task has ended."""


class Executors:
    """What the executors of a session have done."""

    def __init__(self, session: ClassicSession) -> None:
        self._session = session

    def tasks(self) -> dict[str, int]:
        """Return the completed tasks of each executor that lives."""
        jvm: Any = self._session.context._jsc
        found = jvm.sc().statusStore().executorList(True)
        summaries = [found.apply(number) for number in range(found.size())]
        return {one.id(): one.completedTasks() for one in summaries if one.id() != "driver"}

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self.tasks()
            time.sleep(0.02)

    def wait_for_both(self) -> None:
        """Return once two executors are there."""
        self.wait_for(lambda: len(self.tasks()) == 2)

    @contextmanager
    def both_work(self) -> Iterator[None]:
        """Make sure that two executors complete tasks in this block."""
        self.wait_for_both()
        before = self.tasks()
        yield
        # Spark counts them in a thread of its own.
        self.wait_for(
            lambda: all(self.tasks().get(name, 0) > count for name, count in before.items())
        )


@contextmanager
def one_dies(executors: Executors, servers: Cluster, gate: Path) -> Iterator[None]:
    """Kill a worker as soon as tasks of the block have completed; put another in its place.

    The block has `TASKS` tasks; those after the first two must wait for the file `gate`.
    """
    executors.wait_for_both()
    before = sum(executors.tasks().values())
    seen: list[int] = []

    def kill() -> None:
        try:
            executors.wait_for(lambda: sum(executors.tasks().values()) > before)
            seen.append(sum(executors.tasks().values()) - before)
            servers.kill_worker()
        finally:
            gate.touch()

    killer = Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        killer.join()
        servers.add_worker()
    assert 0 < seen[0] < TASKS, "it was killed when all was done"
