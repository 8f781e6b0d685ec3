"""The engine without Spark: threads of this process, because the kernels release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

J = TypeVar("J")
R = TypeVar("R")

Progress = Callable[[str, int, int], None]
"""Called with (title, tasks done, tasks in all) when a step starts and after each task."""


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalEngine:
    """Runs tasks on `threads` threads (default: one for each core), and reports to `progress`."""

    def __init__(self, threads: int | None = None, progress: Progress | None = None) -> None:
        self._threads = max(1, threads or cores())
        self._progress = progress

    @property
    def parallelism(self) -> int:
        return self._threads

    def run(self, task: Callable[[J], R], jobs: Sequence[J], title: str) -> list[R]:
        """Run `task` on each of `jobs`; the first failure cancels what has not started."""
        # Imported late: planners of queries need only `cores`.
        from concurrent.futures import ThreadPoolExecutor, as_completed

        self._report(title, 0, len(jobs))
        with ThreadPoolExecutor(min(self._threads, max(1, len(jobs)))) as pool:
            futures = [pool.submit(task, job) for job in jobs]
            try:
                for done, future in enumerate(as_completed(futures), start=1):
                    future.result()
                    self._report(title, done, len(jobs))
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return [future.result() for future in futures]

    def _report(self, title: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(title, done, total)
