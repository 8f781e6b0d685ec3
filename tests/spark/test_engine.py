"""Tasks on the RDDs of an embedded session."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from mqlake.errors import JobError, StoreError
from mqlake.spark import engine
from mqlake.spark.classic import ClassicSession
from tests.spark import tasks

pytestmark = [pytest.mark.spark]

Steps = list[tuple[str, int, int]]


def test_results_come_in_the_order_of_the_jobs(session: ClassicSession) -> None:
    assert session.engine.run(tasks.double, list(range(7)), "double") == [0, 2, 4, 6, 8, 10, 12]


def test_no_jobs_are_no_work(session: ClassicSession) -> None:
    assert session.engine.run(tasks.double, [], "nothing") == []


def test_tasks_run_on_all_cores_at_once(session: ClassicSession, tmp_path: Path) -> None:
    both = session.engine.run(tasks.meet, [(str(tmp_path), 2)] * 2, "meet")
    assert session.engine.parallelism == 2
    assert len(set(both)) == 2


def test_progress_counts_the_tasks(session: ClassicSession, steps: Steps, tmp_path: Path) -> None:
    """Two tasks end at once, and two of them once the others are counted."""
    steps.clear()
    gate, is_over = tmp_path / "gate", threading.Event()

    def open_gate() -> None:
        while ("stay", 2, 4) not in steps and not is_over.wait(0.02):
            pass
        gate.touch()

    opener = threading.Thread(target=open_gate)
    opener.start()
    try:
        session.engine.run(tasks.pass_gate, ["", "", str(gate), str(gate)], "stay")
    finally:
        is_over.set()
        opener.join()

    assert steps[0] == ("stay", 0, 4)
    assert steps[-1] == ("stay", 4, 4)
    assert ("stay", 2, 4) in steps
    assert steps == sorted(steps)


def test_an_error_of_ours_arrives_as_it_was_raised(session: ClassicSession) -> None:
    with pytest.raises(StoreError, match=r"^commitlog/3: cannot be read or so it seems$"):
        session.engine.run(tasks.refuse, [2, 3], "read")


def test_any_other_error_names_the_step(session: ClassicSession) -> None:
    with pytest.raises(JobError, match=r"^divide: ZeroDivisionError: division by zero$"):
        session.engine.run(tasks.break_down, [0], "divide")


def test_a_killed_worker_is_replaced(session: ClassicSession, tmp_path: Path) -> None:
    path, mark = tmp_path / "file", tmp_path / "killed"
    jobs = [(str(path), n, str(mark) if n == 1 else "") for n in range(4)]

    assert session.engine.run(tasks.write_piece, jobs, "write") == [tasks.PIECE] * 4

    assert mark.exists()
    assert path.read_bytes() == b"".join(bytes([n]) * tasks.PIECE for n in range(4))


def test_a_worker_that_always_dies_ends_the_job(session: ClassicSession, tmp_path: Path) -> None:
    hopeless = str(tmp_path / "missing" / "mark")
    with pytest.raises(JobError, match="FileNotFoundError"):
        session.engine.run(tasks.write_piece, [(str(tmp_path / "file"), 0, hopeless)], "write")
    with pytest.raises(JobError, match=r"^die: a Python worker died repeatedly"):
        session.engine.run(tasks.die, [1], "die")


def test_workers_have_the_kernels_before_a_task_asks(session: ClassicSession) -> None:
    assert session.engine.run(tasks.loaded, ["numba"], "look") == [True]


def test_spark_knows_the_step_by_its_title(session: ClassicSession) -> None:
    """The UI is off here; its data is what the status store holds."""
    session.engine.run(tasks.double, [1], "a readable title")

    store = session.context._jsc.sc().statusStore()
    deadline = time.monotonic() + tasks.PATIENCE
    seen: list[str] = []
    # Spark notes jobs there in a thread of its own.
    while "Some(a readable title)" not in seen:
        assert time.monotonic() < deadline, seen
        jobs = store.jobsList(None)
        seen = [str(jobs.apply(n).description()) for n in range(jobs.size())]


def test_a_job_of_somebody_else_has_no_title_of_ours(session: ClassicSession) -> None:
    session.engine.run(tasks.double, [1], "ours")
    assert session.context.getLocalProperty("spark.job.description") is None
    assert session.context.getLocalProperty("spark.jobGroup.id") is None


def test_this_machine_shares_its_files(session: ClassicSession, tmp_path: Path) -> None:
    session.check_shared(tmp_path / "even one that is missing")
    assert session.engine.on_one_host


def test_a_second_session_in_the_process_is_refused(session: ClassicSession) -> None:
    from mqlake.spark.session import open_session

    with pytest.raises(JobError, match="already has a SparkContext"):
        open_session()
    assert session.engine.run(tasks.double, [1], "still there") == [2]


def test_the_sql_session_shares_the_context(session: ClassicSession) -> None:
    assert session.spark.range(3).count() == 3
    assert session.spark is session.spark
    assert not Path("spark-warehouse").exists()


def test_a_cluster_without_an_executor_is_told(
    session: ClassicSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The embedded Spark has no executor besides its driver."""
    monkeypatch.setattr(engine, "PATIENCE", 0)
    monkeypatch.setattr(engine, "INTERVAL", 0.001)  # Shorter than any job.
    monkeypatch.setattr(engine.SparkEngine, "on_one_host", False)
    assert session.engine.run(tasks.double, [1], "double") == [2]
    assert "no executor has started in 0 s" in caplog.text
    assert "spark.executor.memory" in caplog.text
