"""The engine of a classic Spark session: each job is one task of a plain RDD, without shuffle."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mqlake.jobs.local import Progress
from mqlake.query.reading.log import logger
from mqlake.spark.failure import Attempt, failures
from mqlake.storage.clock import SystemClock

if TYPE_CHECKING:
    from pyspark import SparkContext

J = TypeVar("J")
R = TypeVar("R")

log = logger()

PATIENCE = 30
"""Seconds without an executor after which that is logged."""

INTERVAL = 0.25
"""Seconds between two checks of Spark's progress."""


class SparkEngine:
    """Run tasks on the executors of a SparkContext (`mqlake.jobs.engine.Engine`).

    A failed attempt is repeated as often as Spark's settings say (`spark.task.maxFailures`; the
    second number of `local[n,m]`).
    """

    def __init__(self, context: SparkContext, progress: Progress | None = None) -> None:
        self._context = context
        self._progress = progress

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at the same time: the cores of the executors that have
        reported so far.
        """
        return self._context.defaultParallelism

    @property
    def on_one_host(self) -> bool:
        """Return whether tasks run on the driver's host and see its files."""
        return str(self._context.master).startswith("local[")

    def run(self, task: Callable[[J], R], jobs: Sequence[J], title: str) -> list[R]:
        """Run `task` on each of `jobs`, one Spark task each, and return the results in their order.

        Raises the MqlakeError that a task raised, and JobError if anything else ends the job. An
        interrupt (Ctrl-C) cancels the job.
        """
        if not jobs:
            return []
        group = f"mqlake-{uuid.uuid4().hex}"
        self._report(title, 0, len(jobs))
        with failures(title):
            results = self._start(task, jobs, title, group)
            try:
                self._watch(results, title, len(jobs), group)
            except KeyboardInterrupt:
                self._context.cancelJobGroup(group)
                raise
            found = results.result()
        self._report(title, len(jobs), len(jobs))
        return found

    def _start(
        self, task: Callable[[J], R], jobs: Sequence[J], title: str, group: str
    ) -> Future[list[R]]:
        """Run the job in its own thread, because an interrupted call of Java leaves Py4J in an
        undefined state.

        Spark's settings for each thread, such as the job's group and its title in Spark's UI, end
        with the thread.
        """
        from pyspark import InheritableThread

        results: Future[list[R]] = Future()

        def collect() -> None:
            try:
                self._context.setJobGroup(group, title)
                rdd = self._context.parallelize(jobs, len(jobs)).map(Attempt(task))
                results.set_result(rdd.setName(title).collect())
            except BaseException as error:  # noqa: BLE001  raised where the result is asked for
                results.set_exception(error)

        InheritableThread(target=collect, name=group, daemon=True).start()
        return results

    def _watch(self, results: Future[list[R]], title: str, total: int, group: str) -> None:
        """Report how many tasks have finished, until the results have arrived."""
        seen, begun, is_told = 0, SystemClock().monotonic(), self.on_one_host
        while not wait([results], INTERVAL).done:
            if not is_told and SystemClock().monotonic() - begun >= PATIENCE:
                is_told = True
                self._tell_no_executor()
            if self._progress is None:
                continue
            done = _finished(self._context.statusTracker(), group)
            if done > seen:
                seen = done
                self._report(title, done, total)

    def _tell_no_executor(self) -> None:
        """Log that the cluster has started no executor, and why that may be."""
        context = cast("Any", self._context)
        if context._jsc.sc().getExecutorMemoryStatus().size() > 1:  # one is the driver
            return
        memory = context.getConf().get("spark.executor.memory", "1g")
        log.warning(
            "no executor has started in %d s: the cluster %s has no free cores, or no worker with "
            "%s of free memory (spark.executor.memory); the job waits",
            PATIENCE,
            context.master,
            memory,
        )

    def _report(self, title: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(title, done, total)


def _finished(tracker: Any, group: str) -> int:
    done = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            status = tracker.getStageInfo(stage)
            done += status.numCompletedTasks if status else 0
    return done
