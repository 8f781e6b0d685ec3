"""Tell how far a Spark job is, from Spark's own status, while the caller waits for its result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

INTERVAL = 0.25
"""Seconds between two looks at Spark's status."""


@contextmanager
def watch(context: Any, group: str, report: Callable[[int], None]) -> Generator[None]:
    """Report the number of finished tasks of a job group while the body runs, when it changes."""
    from py4j.protocol import Py4JError
    from pyspark import InheritableThread

    over = threading.Event()

    def look() -> None:
        tracker, seen = context.statusTracker(), 0
        while not over.wait(INTERVAL):
            try:
                done = _finished(tracker, group)
            except (Py4JError, OSError):  # the JVM has died: the body will say so
                return
            if done > seen:
                seen = done
                report(done)

    thread = InheritableThread(target=look, name="mqlake-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _finished(tracker: Any, group: str) -> int:
    done = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            status = tracker.getStageInfo(stage)
            done += status.numCompletedTasks if status else 0
    return done
