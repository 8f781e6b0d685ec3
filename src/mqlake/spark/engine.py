"""The engine of a classic Spark session: one task of a plain RDD a job, no shuffle."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mqlake.jobs.local import Progress
from mqlake.spark.failure import Attempt, failures
from mqlake.spark.progress import watch

if TYPE_CHECKING:
    from pyspark import SparkContext

J = TypeVar("J")
R = TypeVar("R")


class SparkEngine:
    """Run tasks on the executors of a SparkContext (`mqlake.jobs.engine.Engine`).

    A failed attempt is repeated as often as Spark is told to (`spark.task.maxFailures`; the second
    number of `local[n,m]`).
    """

    def __init__(self, context: SparkContext, progress: Progress | None = None) -> None:
        self._context = context
        self._progress = progress

    @property
    def parallelism(self) -> int:
        """How many tasks run at once: the cores of the executors that have reported so far."""
        return self._context.defaultParallelism

    @property
    def on_one_host(self) -> bool:
        """Whether tasks run in the driver's own host and see its files."""
        return str(self._context.master).startswith("local[")

    def run(self, task: Callable[[J], R], jobs: Sequence[J], title: str) -> list[R]:
        """Run `task` on each of `jobs`, one Spark task each, and return the results in their order.

        Raises the MqlakeError that a task raised, and JobError for whatever else ends the job.
        """
        if not jobs:
            return []
        self._report(title, 0, len(jobs))
        with failures(title), self._group(title) as group, self._watched(group, title, len(jobs)):
            rdd = self._context.parallelize(jobs, len(jobs)).map(Attempt(task))
            results = rdd.setName(title).collect()
        self._report(title, len(jobs), len(jobs))
        return results

    @contextmanager
    def _group(self, title: str) -> Generator[str]:
        """Make the body's Spark jobs a group of their own, called `title` in Spark's UI."""
        group = f"mqlake-{uuid.uuid4().hex}"
        self._context.setJobGroup(group, title)
        try:
            yield group
        finally:
            for name in ("spark.jobGroup.id", "spark.job.description"):
                # None is how Spark clears a local property, though the type says str.
                self._context.setLocalProperty(name, cast("Any", None))

    def _watched(self, group: str, title: str, total: int) -> AbstractContextManager[None]:
        if self._progress is None:
            return nullcontext()
        return watch(self._context, group, lambda done: self._report(title, done, total))

    def _report(self, title: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(title, done, total)
