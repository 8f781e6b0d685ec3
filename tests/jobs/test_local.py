from __future__ import annotations

import threading
import time

import pytest

from mqlake.errors import JobError
from mqlake.jobs.local import LocalEngine


def double(job: int) -> int:
    return 2 * job


def test_results_come_in_the_order_of_the_jobs() -> None:
    assert [2 * n for n in range(50)] == LocalEngine(4).run(double, list(range(50)), "double")


def test_nothing_to_do() -> None:
    assert LocalEngine(2).run(double, [], "nothing") == []


def test_progress_is_told_from_none_to_all() -> None:
    told: list[tuple[str, int, int]] = []

    LocalEngine(2, lambda *step: told.append(step)).run(double, [1, 2, 3], "double")

    assert [("double", done, 3) for done in range(4)] == told


def test_the_first_failure_ends_the_run() -> None:
    started: list[int] = []

    def fail_first(job: int) -> None:
        started.append(job)
        if job == 0:
            raise JobError("job 0")
        time.sleep(min(0.01 * 2**job, 1))  # until the caller has cancelled the others

    with pytest.raises(JobError, match="job 0"):
        LocalEngine(1).run(fail_first, list(range(100)), "fail")
    assert len(started) < 100


def test_tasks_run_at_once() -> None:
    barrier = threading.Barrier(3, timeout=60)

    met = LocalEngine(3).run(lambda _: barrier.wait(), [0, 1, 2], "meet")

    assert sorted(met) == [0, 1, 2]
