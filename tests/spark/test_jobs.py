"""The jobs on an embedded session leave what the local engine leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import verify
from mqlake.spark.classic import ClassicSession
from mqlake.spark.engine import SparkEngine
from tests.golden import store
from tests.jobs.verify import test_batch_units as batches
from tests.spark import tasks
from tests.spark.files import digests

pytestmark = [pytest.mark.spark]


class Deadly:
    """An engine whose tasks are all killed half-way when first tried."""

    def __init__(self, engine: SparkEngine, marks: Path) -> None:
        self.engine = engine
        self.marks = marks
        self.parallelism = engine.parallelism

    def run(self, task: Callable[[Any], Any], jobs: Sequence[Any], title: str) -> list[Any]:
        return self.engine.run(tasks.DieHalfway(task, str(self.marks)), jobs, title)


def test_rebuild(session: ClassicSession, expected: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    rebuild(store("rmq5-clean").path, session.engine, out=out, tasks=5)
    assert digests(out) == expected


def test_rebuild_though_every_task_is_killed_once(
    session: ClassicSession, expected: dict[str, str], tmp_path: Path
) -> None:
    marks, out = tmp_path / "marks", tmp_path / "out"
    marks.mkdir()

    rebuild(store("rmq5-clean").path, Deadly(session.engine, marks), out=out, tasks=3)

    assert len(list(marks.iterdir())) == 3 + 3  # splits of the log, index files
    assert digests(out) == expected


def test_batch_consume_queues(session: ClassicSession, tmp_path: Path) -> None:
    path = batches.make(tmp_path / "store")
    assert verify(path, session.engine, tasks=3).ok
    batches.edit(path, 1, 2, size=4)
    batches.write(path, 3, bytes(46), 7)

    report = verify(path, session.engine, tasks=3)

    assert batches.counts(report) == (1, 1, 0)
    assert report == verify(path, LocalEngine(2), tasks=3)
