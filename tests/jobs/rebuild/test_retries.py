"""A task may die half-way and run again, or run twice at once: the bytes are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import JobError
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.queues import files as queue_files
from mqlake.jobs.rebuild import index_writer, rebuild
from tests.golden import store
from tests.jobs.model import read_index_files, read_queue_files


class AttemptError(Exception):
    """An attempt of a task ended half-way."""


class RetryingEngine(LocalEngine):
    """An engine that runs each task until it succeeds, and then a second time."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.deaths: list[AttemptError] = []  # threads append to a list one at a time

    def run(self, task: Callable[[Any], Any], jobs: Sequence[Any], title: str) -> list[Any]:
        def stubborn(job: Any) -> Any:
            while True:
                try:
                    task(job)
                    return task(job)
                except AttemptError as death:
                    self.deaths.append(death)

        return super().run(stubborn, jobs, title)


def dying(function: Callable[..., Any], times: int) -> Callable[..., Any]:
    """Return the function with every second call dying after its work, `times` times in all."""
    calls = count(1)

    def wrapper(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        number = next(calls)
        if number % 2 and number < 2 * times:
            raise AttemptError
        return result

    return wrapper


@pytest.mark.parametrize("threads", [1, 3])
def test_attempts_that_die_leave_no_trace(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = store("rmq5-clean")
    put = dying(queue_files.QueueFileWriter._put, 20)
    monkeypatch.setattr(queue_files.QueueFileWriter, "_put", put)
    monkeypatch.setattr(queue_files, "_HELD_BYTES", 1000)
    complete = dying(index_writer.IndexFileWriter.complete, 2)
    monkeypatch.setattr(index_writer.IndexFileWriter, "complete", complete)
    engine = RetryingEngine(threads)

    report = rebuild(golden.path, engine, out=tmp_path / "out", tasks=5)

    assert len(engine.deaths) == 22
    assert read_queue_files(golden.path) == read_queue_files(tmp_path / "out")
    assert read_index_files(golden.path) == read_index_files(tmp_path / "out")
    assert (report.records, report.passes) == (3931, 1)
    assert {"consumequeue", "index", "checkpoint"} == {
        path.name for path in (tmp_path / "out").iterdir()
    }


def test_a_second_rebuild_into_the_same_directory_is_refused(tmp_path: Path) -> None:
    """It removed what the first one had built, in the middle of its work."""
    golden, out = store("rmq5-clean"), tmp_path / "out"

    class Meeting(LocalEngine):
        def run(self, *arguments: Any) -> list[Any]:
            with pytest.raises(JobError, match="another job writes to this directory"):
                rebuild(golden.path, LocalEngine(1), out=out)
            return super().run(*arguments)

    rebuild(golden.path, Meeting(2), out=out)

    assert read_queue_files(out) == read_queue_files(golden.path)
