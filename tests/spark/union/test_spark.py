"""A table and the log after it inside of a real Spark, while `mqlake follow` runs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from mqlake.lake.options import FollowOptions, Format
from mqlake.spark.classic import ClassicSession
from mqlake.spark.follow.job import follow
from mqlake.store import BlockingMessageStore, Message
from tests.golden import store
from tests.lake.union.kept_lake import KeptLake
from tests.query.store.rows import as_recorded, in_order
from tests.query.store.truth import comparable, expected_rows
from tests.spark.follow.life import options as of_a_life
from tests.spark.union import watching

pytestmark = [pytest.mark.spark]

SMALL = {"mappedFileSizeCommitLog": 1 << 16}
NIGHTLY = pytest.mark.nightly


def load(session: ClassicSession, given: dict[str, str]) -> list[dict[str, Any]]:
    frame = session.spark.read.format("rocketmq").options(**given).load()
    return in_order(as_recorded(row.asDict()) for row in frame.collect())


@pytest.mark.parametrize(
    "format_",
    [
        Format.DELTA,
        pytest.param(Format.ICEBERG, marks=NIGHTLY),  # SQL reads one below
        pytest.param(Format.PARQUET, marks=NIGHTLY),  # test_union reads its rows without a Spark
    ],
)
def test_every_message_in_every_column(
    session: ClassicSession, tmp_path: Path, format_: Format
) -> None:
    lake = KeptLake(tmp_path, format_)
    lake.take(9)
    lake.grow(30)
    assert load(session, lake.given()) == lake.expected()


def test_what_follow_brings_in(session: ClassicSession, tmp_path: Path) -> None:
    golden, out = store("rmq5-clean"), tmp_path / "table"
    given = FollowOptions(
        store=golden.path,
        format=Format.DELTA,
        out=out,
        checkpoint=tmp_path / "checkpoint",
        once=True,
    )
    follow(session, given)
    rows = load(session, {"path": str(golden.path), "table": str(out)})
    assert [comparable(row) for row in rows] == expected_rows(golden)


def test_plain_sql(session: ClassicSession, tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.ICEBERG)
    lake.take(9)
    spark = session.spark
    options = ", ".join(f"{name} '{value}'" for name, value in lake.given().items())
    spark.sql(f"CREATE TABLE as_one USING rocketmq OPTIONS ({options})")
    try:
        for _ in range(2):
            (row,) = spark.sql("SELECT count(*), count(DISTINCT keys) FROM as_one").collect()
            assert tuple(row) == (len(lake.truth), len(lake.truth))
            lake.grow(5)
            lake.take()
        (row,) = spark.sql("SELECT count(*) FROM as_one WITH (keys 'key-3 key-7')").collect()
        assert tuple(row) == (2,)
    finally:
        spark.sql("DROP TABLE as_one")


def test_an_acknowledged_message_is_in_the_next_query(
    session: ClassicSession, tmp_path: Path
) -> None:
    path, out = tmp_path / "store", tmp_path / "table"
    stop = threading.Event()
    given = of_a_life(path, Format.DELTA, out, once=False)
    follower = threading.Thread(target=follow, args=(session, given, stop))
    options = {"table": str(out), "columns": "topic,queueOffset,physicalOffset"}
    with BlockingMessageStore.open(path, SMALL) as live:
        live.put(Message("A", b"first"))
        follower.start()
        try:
            while not (out / "_delta_log" / f"{1:020d}.json").exists():
                assert follower.is_alive()
                follower.join(0.1)
            for count in range(2, 12):
                live.put(Message("A", b"x" * 100 * count))
                rows = load(session, options)
                assert [row["queueOffset"] for row in rows] == list(range(count))
        finally:
            stop.set()
            follower.join()


@pytest.mark.timeout(900)  # each life starts a JVM
@pytest.mark.nightly  # tests/spark/follow/test_killed.py kills a driver in each run
def test_reads_while_a_driver_is_killed(tmp_path: Path) -> None:
    for outcome in watching.run(tmp_path, tuple(Format), 1, 21):
        assert (outcome.kills, outcome.violations) == (1, 0), outcome
        assert outcome.reads
