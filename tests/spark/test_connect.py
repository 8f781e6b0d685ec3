"""Tasks through a real Spark Connect server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.errors import JobError, StoreError
from mqlake.jobs.rebuild import rebuild
from mqlake.spark.dataframe import messages
from mqlake.spark.reading.pruned import pruned
from mqlake.spark.session import Session, open_session
from tests.golden import store
from tests.spark import tasks
from tests.spark.files import digests
from tests.spark.servers import connect_server

pytest.importorskip("grpc", reason="Spark Connect needs the packages of the extra `connect`")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("alone"),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture(scope="module")
def session(url: str, steps: list[tuple[str, int, int]]) -> Iterator[Session]:
    with open_session(url, progress=lambda *step: steps.append(step)) as session:
        yield session


def test_results_come_in_the_order_of_the_jobs(session: Session) -> None:
    assert session.engine.run(tasks.double, list(range(7)), "double") == [0, 2, 4, 6, 8, 10, 12]


def test_no_jobs_are_no_work(session: Session) -> None:
    assert session.engine.run(tasks.double, [], "nothing") == []


def test_one_task_a_job(session: Session, tmp_path: Path) -> None:
    both = session.engine.run(tasks.meet, [(str(tmp_path), 2)] * 2, "meet")
    assert len(set(both)) == 2


def test_parallelism_is_the_number_of_cores(session: Session) -> None:
    assert session.engine.parallelism == 2


def test_progress_begins_and_ends(session: Session, steps: list[tuple[str, int, int]]) -> None:
    steps.clear()
    session.engine.run(tasks.double, [1, 2, 3], "count, then tell")
    assert steps[0] == ("count, then tell", 0, 3)
    assert steps[-1] == ("count, then tell", 3, 3)


def test_an_error_of_ours_arrives_as_it_was_raised(session: Session) -> None:
    with pytest.raises(StoreError, match=r"^commitlog/3: cannot be read or so it seems$"):
        session.engine.run(tasks.refuse, [2, 3], "read")


def test_any_other_error_names_the_step(session: Session) -> None:
    with pytest.raises(JobError, match=r"^divide: ZeroDivisionError: division by zero$"):
        session.engine.run(tasks.break_down, [0], "divide")


def test_a_killed_worker_is_replaced(session: Session, tmp_path: Path) -> None:
    path, mark = tmp_path / "file", tmp_path / "killed"
    jobs = [(str(path), 0, ""), (str(path), 1, str(mark)), (str(path), 2, "")]

    assert session.engine.run(tasks.write_piece, jobs, "write") == [tasks.PIECE] * 3

    assert mark.exists()
    assert path.read_bytes() == b"".join(bytes([n]) * tasks.PIECE for n in range(3))


def test_a_directory_of_this_machine_is_shared(session: Session, tmp_path: Path) -> None:
    session.check_shared(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_rebuild(session: Session, expected: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    rebuild(store("rmq5-clean").path, session.engine, out=out, tasks=5)
    assert digests(out) == expected


def test_messages_as_a_dataframe(session: Session) -> None:
    golden = store("rmq5-clean")
    frame = messages(session.spark, golden.path, ["physicalOffset", "msgId"])
    rows = {row.physicalOffset: row.msgId for row in frame.collect()}
    assert rows == {m["physicalOffset"]: m["offsetMsgId"] for m in golden.messages()}


@pytest.mark.nightly  # the frame above reads through a source
def test_the_sources(session: Session) -> None:
    path = str(store("rmq5-clean").path)
    frame = session.spark.read.format("rocketmq").option("subscribe", "TopicA").load(path)
    counted = pruned(
        session.spark,
        lambda messages: messages.groupBy("topic").count(),
        path,
        options={"subscribe": "TopicA"},
    )
    assert [tuple(row) for row in counted.collect()] == [("TopicA", frame.count())]


def test_no_server_is_one_line() -> None:
    with pytest.raises(JobError, match=r"^no Spark Connect server answers at sc://127.0.0.1:9:"):
        open_session("sc://127.0.0.1:9")
