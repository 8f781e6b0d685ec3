"""A table for each topic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from deltalake import DeltaTable, Field

from mqlake.errors import JobError
from mqlake.jobs.local import LocalEngine
from mqlake.lake.files.compaction import merge
from mqlake.lake.files.partition_writer import write_all
from mqlake.lake.files.topic_shapes import directory_name, topic_of
from mqlake.lake.follow.accounting import check
from mqlake.lake.followers.identity import CheckpointIdentity, note_query
from mqlake.lake.options import Format
from mqlake.lake.tables.opening import open_table
from mqlake.spark.classic import ClassicSession
from mqlake.spark.follow.job import follow
from mqlake.spark.follow.replaying import replay
from mqlake.store import BlockingMessageStore, Message
from tests.lake.tables.tables import FOLLOWER, add, batch, numbers, options, read, row
from tests.lake.union.kept_lake import union_rows
from tests.spark.follow.test_follow import options as query_options

with_versions = pytest.mark.parametrize("format_", [Format.DELTA, Format.ICEBERG])
TOPICS = ("Orders", "%RETRY%G", "支付.x", "_mqlake")


def opened(path: Path, format_: Format, **others: Any) -> Any:
    given = options(path, format_, is_per_topic=True, **others)
    note_query(given, CheckpointIdentity(FOLLOWER, "/store", "", {"physicalOffset": 0}))
    return open_table(given)


def table_of(path: Path, topic: str) -> Path:
    return path / directory_name(topic)


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("Orders", "Orders"),
        ("..", "~2E~2E"),
        ("a/b~", "a~2Fb~7E"),
        ("_mqlake", "~5Fmqlake"),
        ("%RETRY%G", "~25RETRY~25G"),
    ],
)
def test_names_of_directories(topic: str, name: str) -> None:
    assert (directory_name(topic), topic_of(name)) == (name, topic)


def test_long_topics_have_short_names() -> None:
    names = {directory_name("支" * 100 + end) for end in "ab"}
    assert len(names) == 2
    assert all(len(name) <= 200 for name in names)
    assert [topic_of(name) for name in names] == [None, None]


@with_versions
def test_rows_go_to_the_table_of_their_topic(tmp_path: Path, format_: Format) -> None:
    table = opened(tmp_path, format_)
    add(table, 0, [row(n, TOPICS[n % 2]) for n in range(10)])
    assert table.last_batch(FOLLOWER) == 0
    table = opened(tmp_path, format_)
    add(table, 1, [row(n, TOPICS[n % 4]) for n in range(10, 30)])
    assert sorted(file.topic for file in table.files()) == sorted([*TOPICS, *TOPICS[:2]])
    table.replace([merge(job) for job in table.merges(is_last=True)])
    assert sorted(file.topic for file in table.files()) == sorted(TOPICS)
    for place, topic in enumerate(TOPICS):
        modulus = [n for n in range(10) if n % 2 == place] if place < 2 else []
        expected = modulus + [n for n in range(10, 30) if n % 4 == place]
        assert numbers(format_, table_of(tmp_path, topic)) == expected
    assert sum(one.num_rows for one in table.scan(("topic", "body"))) == 30


@with_versions
def test_a_table_whose_directory_has_a_cut_name(tmp_path: Path, format_: Format) -> None:
    table = opened(tmp_path, format_)
    add(table, 0, [row(1, "支" * 60), row(2, "Orders")])
    table = opened(tmp_path, format_)
    assert sorted(file.topic for file in table.files()) == ["Orders", "支" * 60]
    assert sum(one.num_rows for one in table.scan(("topic", "body"))) == 2


@with_versions
def test_tables_by_day(tmp_path: Path, format_: Format) -> None:
    table = opened(tmp_path, format_, partition_by=("day",))
    for number in range(3):
        add(table, number, [row(n, "AB"[n % 2], 20_000 + n // 2) for n in range(4)])
    table.replace([merge(job) for job in table.merges(is_last=True)])
    assert len(table.files()) == 4
    assert numbers(format_, tmp_path / "A") == [0, 0, 0, 2, 2, 2]
    assert set(read(format_, tmp_path / "B")["topic"].to_pylist()) == {"B"}


@with_versions
def test_a_batch_that_some_tables_have_already(tmp_path: Path, format_: Format) -> None:
    table = opened(tmp_path, format_)
    rows = [row(n, TOPICS[n % 3]) for n in range(9)]
    add(table, 0, rows)
    files = write_all(table.shape(FOLLOWER, 1), [batch(rows)])
    one = next(file for file in files if file.topic == TOPICS[0])
    own = open_table(options(table_of(tmp_path, TOPICS[0]), format_))
    own.commit(FOLLOWER, 1, [one])  # and then the driver was killed
    table = opened(tmp_path, format_)
    assert table.last_batch(FOLLOWER) == 0
    add(table, 1, rows)
    assert table.last_batch(FOLLOWER) == 1
    for place, topic in enumerate(TOPICS[:3]):
        twice = sorted([n for n in range(9) if n % 3 == place] * 2)
        assert numbers(format_, table_of(tmp_path, topic)) == twice


def test_plain_files_have_one_table(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="only in Delta Lake and Iceberg"):
        opened(tmp_path, Format.PARQUET)


@pytest.mark.spark
@pytest.mark.parametrize(
    "format_",
    [pytest.param(Format.DELTA, marks=pytest.mark.nightly), Format.ICEBERG],  # Delta's are below
)
def test_follow(session: ClassicSession, tmp_path: Path, format_: Format) -> None:
    path, out = tmp_path / "store", tmp_path / "lake"
    given = query_options(
        path, format_, out, is_per_topic=True, source={"maxOffsetsPerTrigger": "20"}
    )
    with BlockingMessageStore.open(path) as live:
        for number in range(60):
            live.put(Message(TOPICS[number % 3], b"%d" % number))
    assert follow(session, given).messages == 60
    for place, topic in enumerate(TOPICS[:3]):
        found = read(format_, table_of(out, topic))["body"].to_pylist()
        assert sorted(map(int, found)) == list(range(place, 60, 3))
    checked = check(given, LocalEngine())
    assert checked.ok
    assert checked.rows.count == 60

    with BlockingMessageStore.open(path) as live:
        live.put(Message(TOPICS[0], b"60"))
        live.put(Message(TOPICS[1], b"61"))
    as_one = {"table": str(table_of(out, TOPICS[0])), "columns": "body"}
    assert sorted(int(row["body"]) for row in union_rows(as_one)) == list(range(0, 61, 3))
    assert follow(session, given).messages == 2
    assert sorted(int(row["body"]) for row in union_rows(as_one)) == list(range(0, 61, 3))


@pytest.mark.spark
def test_a_table_that_refuses_stops_no_other(session: ClassicSession, tmp_path: Path) -> None:
    path, out = tmp_path / "store", tmp_path / "lake"
    given = query_options(path, Format.DELTA, out, is_per_topic=True)
    with BlockingMessageStore.open(path) as live:
        for topic in ("A", "B"):
            live.put(Message(topic, b"1"))
    columns = tuple(name for name in given.columns if name != "queueId")
    follow(session, msgspec.structs.replace(given, columns=columns))
    DeltaTable(out / "A").alter.add_columns([Field("queueId", "string")])  # pyright: ignore[reportArgumentType]
    with BlockingMessageStore.open(path) as live:
        for topic in ("A", "B"):
            live.put(Message(topic, b"2"))
    assert follow(session, given).dead_letters == 1
    assert read(Format.DELTA, out / "A")["body"].to_pylist() == [b"1"]
    assert sorted(read(Format.DELTA, out / "B")["body"].to_pylist()) == [b"1", b"2"]
    fewer = msgspec.structs.replace(given, columns=columns)
    assert replay(fewer).messages == 1
    assert sorted(read(Format.DELTA, out / "A")["body"].to_pylist()) == [b"1", b"2"]
