"""A standalone cluster: a master and two workers of one core each, as processes of their own.

Tasks, jobs, source and sink run on both workers, also when one is killed in between: `make test`
kills one under the sink only. `make cluster-test` runs all on a larger log: CLUSTER_TEST_MIB.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.commit_log import Log, write_commit_log

from mqlake.cli.app import run
from mqlake.cli.commands import verify as verify_command
from mqlake.cli.text import rate
from mqlake.errors import JobError, StoreError
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import verify
from mqlake.spark import session as sessions
from mqlake.spark.classic import ClassicSession
from mqlake.spark.engine import SparkEngine
from mqlake.spark.session import open_session
from tests.golden import store
from tests.jobs.model import read_log
from tests.query.store.rows import as_recorded, in_order
from tests.query.store.truth import comparable, expected_rows
from tests.spark import tasks
from tests.spark.executors import TASKS, Executors, one_dies
from tests.spark.files import digests
from tests.spark.servers import Cluster, cluster, quick_start
from tests.spark.small_session import SMALL
from tests.store.record_crcs import without_crc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("alone"),
]

SIZE = int(os.environ.get("CLUSTER_TEST_MIB", "12")) << 20

ROW_HASH = (
    "xxhash64(topic, queueId, queueOffset, physicalOffset, uniqKey, body, map_entries(properties))"
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as servers:
        yield servers


@pytest.fixture(scope="module")
def session(servers: Cluster) -> Iterator[ClassicSession]:
    quick = {
        "spark.ui.liveUpdate.period": "0",  # `Executors` count at once
        "spark.driver.extraJavaOptions": quick_start(),
        "spark.executor.extraJavaOptions": quick_start(),
    }
    session = open_session(servers.master, settings=SMALL | quick)
    assert isinstance(session, ClassicSession)
    with session:
        Executors(session).wait_for_both()
        yield session


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store without derived files, in two segments."""
    return tmp_path_factory.mktemp("log") / "store"


@pytest.fixture(scope="module")
def log(path: Path) -> Log:
    return write_commit_log(path / "commitlog", segment_size=SIZE // 2, segments=2)


@pytest.fixture(scope="module")
def rebuilt(path: Path, log: Log, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of what one process rebuilds."""
    out = tmp_path_factory.mktemp("rebuilt") / "out"
    rebuild(path, LocalEngine(1), out=out)
    return digests(out)


@pytest.fixture
def executors(session: ClassicSession) -> Executors:
    return Executors(session)


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


@pytest.mark.nightly  # below, both workers do so
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


def read(session: ClassicSession, path: Path, **options: Any) -> DataFrame:
    given = {"minPartitions": TASKS, **options}
    return session.spark.read.format("rocketmq").options(**given).load(str(path))


class Gated:
    """An engine whose tasks after the first two of each step wait for a file of this name."""

    def __init__(self, engine: SparkEngine, gate: Path) -> None:
        self.engine, self.gate = engine, gate
        self.parallelism = engine.parallelism

    def run(self, task: Callable[[Any], Any], jobs: Sequence[Any], title: str) -> list[Any]:
        numbered = list(enumerate(jobs))
        return self.engine.run(tasks.JobsAtGate(task, str(self.gate)), numbered, title)


def held(frame: DataFrame, gate: Path) -> DataFrame:
    """Return the same rows, most of which come only when there is a file of this name."""
    return frame.mapInArrow(tasks.RowsAtGate(str(gate)), frame.schema)


def totals(frame: DataFrame) -> tuple[Any, ...]:
    rows = frame.selectExpr("size", f"cast({ROW_HASH} as decimal(38)) as hash")
    return tuple(rows.selectExpr("count(*)", "sum(size)", "sum(hash)").collect()[0])


def test_rebuild_and_verify(
    session: ClassicSession,
    executors: Executors,
    path: Path,
    log: Log,
    rebuilt: dict[str, str],
    tmp_path: Path,
) -> None:
    with executors.both_work():
        rebuild(path, session.engine, out=tmp_path / "out", tasks=TASKS)
    assert digests(tmp_path / "out") == rebuilt
    rebuild(path, LocalEngine(1))
    with executors.both_work():
        report = verify(path, session.engine, tasks=TASKS)
    assert report.damage == []
    assert report.records == log.records


def test_the_command_shows_what_all_executors_verify_a_second(
    session: ClassicSession,
    servers: Cluster,
    executors: Executors,
    path: Path,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The test's session is used, because it has all cores; the verification takes 4 seconds."""
    masters: list[str | None] = []

    @contextmanager
    def opened(master: str | None, **_: object) -> Generator[ClassicSession]:
        masters.append(master)
        yield session

    clock = count(step=4)
    monkeypatch.setattr(sessions, "open_session", opened)
    monkeypatch.setattr(verify_command, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    with executors.both_work():
        code = run(["verify", str(path), "--master", servers.master])
    shown = capsys.readouterr().out
    assert masters == [servers.master]
    assert code in (0, 1)  # 1 without derived files.
    assert f"{log.records:,}" in shown
    size = sum(file.stat().st_size for file in (path / "commitlog").iterdir())
    assert f"took 4.00 s, {rate(size, 4)}" in " ".join(shown.split())


@pytest.mark.nightly  # see test_jobs for tasks that die halfway
def test_rebuild_while_a_worker_is_killed(
    session: ClassicSession,
    executors: Executors,
    servers: Cluster,
    path: Path,
    rebuilt: dict[str, str],
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    with one_dies(executors, servers, gate):
        rebuild(path, Gated(session.engine, gate), out=tmp_path / "out", tasks=TASKS)
    assert digests(tmp_path / "out") == rebuilt


@pytest.mark.nightly  # test_sink reads the same rows on both workers
def test_source(session: ClassicSession, executors: Executors, path: Path, log: Log) -> None:
    golden = store("rmq5-clean")
    rows = in_order(as_recorded(row.asDict()) for row in read(session, golden.path).collect())
    assert [comparable(row) for row in rows] == expected_rows(golden)

    with executors.both_work():
        expected = totals(read(session, path))
    assert expected[0] == log.records


@pytest.mark.nightly  # tests/peer/test_spark_cluster.py kills one under a stream
def test_source_while_a_worker_is_killed(
    session: ClassicSession,
    executors: Executors,
    servers: Cluster,
    path: Path,
    log: Log,
    tmp_path: Path,
) -> None:
    expected = totals(read(session, path))
    assert expected[0] == log.records
    gate = tmp_path / "gate"
    with one_dies(executors, servers, gate):
        assert totals(held(read(session, path), gate)) == expected


def test_sink(
    session: ClassicSession,
    executors: Executors,
    servers: Cluster,
    path: Path,
    log: Log,
    tmp_path: Path,
) -> None:
    rows, gate = read(session, path).drop("storeHost", "bodyCrc"), tmp_path / "gate"

    def save(frame: DataFrame, name: str) -> list[tuple[Any, ...]]:
        writer = frame.write.format("rocketmq").mode("append")
        writer.option("mappedFileSizeCommitLog", SIZE // 4).save(str(tmp_path / name))
        return [
            (
                one.physical_offset,
                one.topic,
                one.queue_id,
                one.queue_offset,
                without_crc(one.properties),
            )
            for one in read_log(tmp_path / name)
        ]

    with executors.both_work():
        expected = save(rows, "store")
    assert [one[-1]["KEYS"] for one in expected] == [one.keys[0] for one in read_log(path)]
    with one_dies(executors, servers, gate):
        found = save(held(rows, gate), "again")
    assert found == expected
    assert verify(tmp_path / "again", LocalEngine(1)).damage == []
