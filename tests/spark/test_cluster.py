"""A standalone cluster: a master and two workers of one core each, as processes of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.errors import JobError, StoreError
from mqlake.jobs.rebuild import rebuild
from mqlake.spark.classic import ClassicSession
from mqlake.spark.session import open_session
from tests.golden import store
from tests.spark import tasks
from tests.spark.files import digests
from tests.spark.servers import quick_start, standalone
from tests.spark.small_session import SMALL

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("alone"),
]


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster")) as master:
        yield master


@pytest.fixture(scope="module")
def session(master: str) -> Iterator[ClassicSession]:
    quick = {
        "spark.driver.extraJavaOptions": quick_start(),
        "spark.executor.extraJavaOptions": quick_start(),
    }
    session = open_session(master, settings=SMALL | quick)
    assert isinstance(session, ClassicSession)
    with session:
        yield session


def test_a_shared_directory_is_seen_by_all_executors(
    session: ClassicSession, tmp_path: Path
) -> None:
    assert not session.engine.on_one_host
    session.check_shared(tmp_path)
    assert session.engine.parallelism == 2
    assert list(tmp_path.iterdir()) == []


def test_tasks_run_on_both_executors_in_their_order(session: ClassicSession) -> None:
    where = session.engine.run(tasks.environment, ["SPARK_EXECUTOR_DIRS"] * 8, "look")
    assert len(set(where)) == 2
    assert session.engine.run(tasks.double, list(range(9)), "double") == list(range(0, 18, 2))


def test_an_error_of_ours_arrives_as_it_was_raised(session: ClassicSession) -> None:
    with pytest.raises(StoreError, match=r"^commitlog/3: cannot be read or so it seems$"):
        session.engine.run(tasks.refuse, [2, 3], "read")


def test_a_killed_worker_is_replaced(session: ClassicSession, tmp_path: Path) -> None:
    path, mark = tmp_path / "file", tmp_path / "killed"
    jobs = [(str(path), n, str(mark) if n == 1 else "") for n in range(4)]
    assert session.engine.run(tasks.write_piece, jobs, "write") == [tasks.PIECE] * 4
    assert path.read_bytes() == b"".join(bytes([n]) * tasks.PIECE for n in range(4))


def test_rebuild(session: ClassicSession, expected: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    golden = store("rmq5-clean").path
    session.check_shared(out, golden)
    rebuild(golden, session.engine, out=out, tasks=5)
    assert digests(out) == expected


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("/nonexistent/python", r"^look: the workers cannot find the program /nonexistent/python$"),
        (getattr(sys, "_base_executable", ""), r"^look: the workers' Python cannot import mqlake"),
    ],
)
def test_workers_that_cannot_run_tasks_are_one_line(
    session: ClassicSession, monkeypatch: pytest.MonkeyPatch, program: str, message: str
) -> None:
    """The program is what PYSPARK_PYTHON says when a session opens."""
    monkeypatch.setattr(session.context, "pythonExec", program)
    with pytest.raises(JobError, match=message):
        session.engine.run(tasks.double, [1], "look")
