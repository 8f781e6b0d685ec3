"""Jobs, source and sink on a cluster: tasks on both workers, also when one is killed in between.

`make cluster-test` runs these on a larger log: CLUSTER_TEST_MIB.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.commit_log import Log, write_commit_log

from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import verify
from mqlake.spark.classic import ClassicSession
from mqlake.spark.session import open_session
from tests.golden import store
from tests.jobs.model import read_log
from tests.spark.files import digests
from tests.spark.servers import Cluster, cluster, quick_start
from tests.spark.small_session import SMALL
from tests.spark.source.rows import as_recorded, in_order
from tests.spark.source.truth import comparable, expected_rows
from tests.store.record_crcs import without_crc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("alone"),
]

SIZE = int(os.environ.get("CLUSTER_TEST_MIB", "24")) << 20
TASKS = 12
PATIENCE = 60
"""Seconds until an executor is there, or a task has ended."""

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
        "spark.driver.extraJavaOptions": quick_start(),
        "spark.executor.extraJavaOptions": quick_start(),
    }
    session = open_session(servers.master, settings=SMALL | quick)
    assert isinstance(session, ClassicSession)
    with session:
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


class Executors:
    """What the executors of a session have done."""

    def __init__(self, session: ClassicSession) -> None:
        self._session = session

    def tasks(self) -> dict[str, int]:
        """Return the completed tasks of each executor that lives."""
        jvm: Any = self._session.context._jsc
        found = jvm.sc().statusStore().executorList(True)
        summaries = [found.apply(number) for number in range(found.size())]
        return {one.id(): one.completedTasks() for one in summaries if one.id() != "driver"}

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self.tasks()
            time.sleep(0.02)

    @contextmanager
    def both_work(self) -> Iterator[None]:
        """Make sure that two executors complete tasks in this block."""
        self.wait_for(lambda: len(self.tasks()) == 2)
        before = self.tasks()
        yield
        after = self.tasks()
        assert all(after[name] > count for name, count in before.items()), (before, after)


@contextmanager
def one_dies(executors: Executors, servers: Cluster) -> Iterator[None]:
    """Kill a worker as soon as tasks of the block have completed; put another in its place."""
    executors.wait_for(lambda: len(executors.tasks()) == 2)
    before = sum(executors.tasks().values())
    seen: list[int] = []

    def kill() -> None:
        executors.wait_for(lambda: sum(executors.tasks().values()) > before)
        seen.append(sum(executors.tasks().values()) - before)
        servers.kill_worker()

    killer = Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        killer.join()
        servers.add_worker()
    assert 0 < seen[0] < TASKS, "it was killed when all was done"


@pytest.fixture
def executors(session: ClassicSession) -> Executors:
    return Executors(session)


def read(session: ClassicSession, path: Path, **options: Any) -> DataFrame:
    given = {"minPartitions": TASKS, **options}
    return session.spark.read.format("rocketmq").options(**given).load(str(path))


def totals(frame: DataFrame) -> tuple[Any, ...]:
    rows = frame.selectExpr("size", f"cast({ROW_HASH} as decimal(38)) as hash")
    return tuple(rows.selectExpr("count(*)", "sum(size)", "sum(hash)").collect()[0])


def test_rebuild_and_verify(
    session: ClassicSession,
    executors: Executors,
    servers: Cluster,
    path: Path,
    log: Log,
    rebuilt: dict[str, str],
    tmp_path: Path,
) -> None:
    with executors.both_work():
        rebuild(path, session.engine, out=tmp_path / "out", tasks=TASKS)
    assert digests(tmp_path / "out") == rebuilt
    with one_dies(executors, servers):
        rebuild(path, session.engine, out=tmp_path / "again", tasks=TASKS)
    assert digests(tmp_path / "again") == rebuilt

    rebuild(path, LocalEngine(1))
    with executors.both_work():
        report = verify(path, session.engine, tasks=TASKS)
    assert report.damage == []
    assert report.records == log.records


def test_source(
    session: ClassicSession, executors: Executors, servers: Cluster, path: Path, log: Log
) -> None:
    golden = store("rmq5-clean")
    rows = in_order(as_recorded(row.asDict()) for row in read(session, golden.path).collect())
    assert [comparable(row) for row in rows] == expected_rows(golden)

    with executors.both_work():
        expected = totals(read(session, path))
    assert expected[0] == log.records
    with one_dies(executors, servers):
        assert totals(read(session, path)) == expected


def test_sink(
    session: ClassicSession,
    executors: Executors,
    servers: Cluster,
    path: Path,
    log: Log,
    tmp_path: Path,
) -> None:
    frame = read(session, path).drop("storeHost", "bodyCrc")

    def save(name: str) -> list[tuple[Any, ...]]:
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
        expected = save("store")
    assert [one[-1]["KEYS"] for one in expected] == [one.keys[0] for one in read_log(path)]
    with one_dies(executors, servers):
        found = save("again")
    assert found == expected
    assert verify(tmp_path / "again", LocalEngine(1)).damage == []
