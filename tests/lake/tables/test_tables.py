"""Tables of each format, without a Spark: commits, columns, merging."""

from __future__ import annotations

import errno
import threading
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field
from pyiceberg.types import LongType, NestedField, StringType

from mqlake.errors import DiskError, FormatError, JobError
from mqlake.lake.files import compaction
from mqlake.lake.files.compaction import merge
from mqlake.lake.options import Format, partition_parts
from mqlake.lake.tables import parquet_table
from mqlake.lake.tables.opening import open_table
from mqlake.lake.tables.table import LakeTable
from mqlake.lake.union.parquet_lake import ParquetLake
from mqlake.query.reading.conditions import AnyText
from tests.lake.tables.tables import (
    COLUMNS,
    FOLLOWER,
    add,
    data_files,
    iceberg,
    numbers,
    options,
    read,
    row,
)

OTHER = "1" * 32
NAMES = ["%RETRY%组/../x", "Orders"]

every_format = pytest.mark.parametrize("format_", Format)
with_versions = pytest.mark.parametrize("format_", [Format.DELTA, Format.ICEBERG])


def compact(table: LakeTable, *, is_last: bool = True) -> int:
    merged = [merge(job) for job in table.merges(is_last=is_last)]
    table.replace(merged)
    return len(merged)


@every_format
def test_rows_by_topic_and_day(tmp_path: Path, format_: Format) -> None:
    path = tmp_path / "lake table"
    table = open_table(options(path, format_))
    rows = [row(n, NAMES[n % 2], 20_000 + n % 3 - 1) for n in range(60)]
    rows.append(row(60, day=-1))  # before 1970
    assert table.last_batch(FOLLOWER) == -1
    add(table, 0, rows[:30])
    add(table, 7, rows[30:])
    compact(table)

    found = read(format_, path)
    assert sorted(found["topic"].to_pylist()) == sorted(one["topic"] for one in rows)
    by_number = {one["queueOffset"]: one for one in found.to_pylist()}
    for one in rows:
        there = by_number[one["queueOffset"]]
        assert (there["topic"], there["body"]) == (one["topic"], one["body"])
        if format_ is not Format.ICEBERG:  # there, the day is a partition only
            days = one["storeTimestamp"] // 86_400_000_000
            assert there["day"] == date.fromordinal(date(1970, 1, 1).toordinal() + days)
    assert len(data_files(format_, path)) == 7
    assert (
        table.last_batch(FOLLOWER) == open_table(options(path, format_)).last_batch(FOLLOWER) == 7
    )


@every_format
def test_two_followers(tmp_path: Path, format_: Format) -> None:
    path = tmp_path / "table"
    one, two = open_table(options(path, format_)), None
    add(one, 0, [row(0)])
    two = open_table(options(path, format_)) if format_ is not Format.PARQUET else one
    add(two, 0, [row(1)], follower=OTHER)
    add(one, 1, [row(2)])
    compact(two)
    add(one, 2, [row(3)])
    compact(one)
    assert (two.last_batch(FOLLOWER), two.last_batch(OTHER)) == (2, 0)
    assert numbers(format_, path) == [0, 1, 2, 3]


@every_format
def test_more_columns_and_fewer(tmp_path: Path, format_: Format) -> None:
    path = tmp_path / "table"
    add(open_table(options(path, format_)), 0, [row(0)])
    more = (*COLUMNS[:1], "properties", "keys", *COLUMNS[1:], "tags")
    table = open_table(options(path, format_, columns=more))
    new = {"properties": [("a", "b")], "keys": ["x", "y"], "tags": "t"}
    add(table, 1, [row(1, **new)], more)
    fewer = ("topic", "queueOffset", "storeTimestamp")
    table = open_table(options(path, format_, columns=fewer))
    add(table, 2, [row(2)], fewer)
    add(table, 3, [row(3)], fewer)
    compact(table)

    found = sorted(read(format_, path).to_pylist(), key=lambda one: one["queueOffset"])
    assert [one["tags"] for one in found] == [None, "t", None, None]
    assert [one["keys"] for one in found] == [None, ["x", "y"], None, None]
    assert [one["properties"] for one in found] == [None, [("a", "b")], None, None]
    assert [one["body"] for one in found] == [b"0", b"1", None, None]


@with_versions
def test_columns_of_others(tmp_path: Path, format_: Format) -> None:
    path = tmp_path / "table"
    table = open_table(options(path, format_))
    add(table, 0, [row(0)])
    if format_ is Format.DELTA:
        DeltaTable(path).alter.add_columns(
            [Field("note", "string"), Field("queueId", "long")]  # pyright: ignore[reportArgumentType]
        )
    else:
        with iceberg(path).update_schema() as update:
            update.add_column("note", StringType())
            update.add_column("queueId", LongType())
    add(table, 1, [row(1)])
    wider = (*COLUMNS[:2], "queueId", *COLUMNS[2:])
    table = open_table(options(path, format_, columns=wider))
    add(table, 2, [row(2, queueId=3)], wider)
    compact(table)
    found = sorted(read(format_, path).to_pylist(), key=lambda one: one["queueOffset"])
    assert [one["queueId"] for one in found] == [None, None, 3]
    assert read(format_, path).schema.field("queueId").type == pa.int64()


@with_versions
def test_columns_that_do_not_fit(tmp_path: Path, format_: Format) -> None:
    path = tmp_path / "table"
    add(open_table(options(path, format_)), 0, [row(0)])
    if format_ is Format.DELTA:
        DeltaTable(path).alter.add_columns([Field("tags", "long")])  # pyright: ignore[reportArgumentType]
    else:
        with iceberg(path).update_schema() as update:
            update.add_column("tags", LongType())
    table = open_table(options(path, format_, columns=(*COLUMNS, "tags")))
    with pytest.raises(JobError, match=r"column tags is .*64 there, and string here; leave it out"):
        table.shape(FOLLOWER, 1)


def test_tables_of_others(tmp_path: Path) -> None:
    schema = pa.schema([("topic", pa.string()), ("body", pa.binary())])
    DeltaTable.create(tmp_path / "d", schema, partition_by=["topic"])
    with pytest.raises(JobError, match="partitioned by topic: give that as --partition-by"):
        open_table(options(tmp_path / "d", Format.DELTA))

    columns = [pa.field("topic", pa.string()), pa.field("day", pa.date32())]
    must = pa.schema([*columns, pa.field("must", pa.int32(), nullable=False)])
    DeltaTable.create(tmp_path / "m", must, partition_by=["topic", "day"])
    with pytest.raises(JobError, match="column must may not be null"):
        open_table(options(tmp_path / "m", Format.DELTA)).shape(FOLLOWER, 0)

    first = options(tmp_path / "i", Format.ICEBERG)
    open_table(first)
    with iceberg(tmp_path / "i").update_spec() as spec:
        spec.remove_field("day")
    with pytest.raises(JobError, match="partitioned by topic: give that as --partition-by"):
        open_table(first)
    uri = f"sqlite:///{tmp_path}/i/_mqlake/catalog.db"
    elsewhere = options(tmp_path / "j", Format.ICEBERG, catalog=uri, table="mqlake.i")
    with pytest.raises(JobError, match=r"mqlake\.i: this table is at file://.*/i: give that"):
        open_table(elsewhere)

    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "somebody.parquet").touch()
    with pytest.raises(JobError, match="not empty, and not a table of mqlake"):
        open_table(options(tmp_path / "p", Format.PARQUET))


def test_a_table_in_a_catalog(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    given = options(tmp_path / "lake", Format.ICEBERG, catalog=uri, table="shop.messages")
    add(open_table(given), 0, [row(0)])
    from pyiceberg.catalog import load_catalog

    table = load_catalog("default", uri=uri).load_table("shop.messages")
    assert table.scan().to_arrow()["queueOffset"].to_pylist() == [0]
    with table.update_schema() as update:
        update.add_column("new", StringType())
    assert isinstance(table.schema().find_field("new"), NestedField)
    add(open_table(given), 1, [row(1)])
    table.refresh()
    assert sorted(table.scan().to_arrow()["queueOffset"].to_pylist()) == [0, 1]


@with_versions
def test_readers_during_compaction(tmp_path: Path, format_: Format) -> None:
    path = tmp_path / "table"
    table = open_table(options(path, format_))
    for number in range(12):
        add(table, number, [row(2 * number), row(2 * number + 1, "B")])
    early = DeltaTable(path) if format_ is Format.DELTA else iceberg(path)
    expected = list(range(24))
    seen: list[list[int]] = []
    stop = threading.Event()

    def look() -> None:
        while True:  # once at least, however late this thread begins
            seen.append(numbers(format_, path))
            if stop.is_set():
                break

    reader = threading.Thread(target=look)
    reader.start()
    try:
        before = data_files(format_, path)
        assert compact(table) == 2
        for number in range(12, 16):
            add(table, number, [])
            assert compact(table) == 0
    finally:
        stop.set()
        reader.join()
    assert (len(before), len(data_files(format_, path))) == (24, 2)
    assert seen
    assert all(rows == expected for rows in seen)
    old = early.to_pyarrow_table() if isinstance(early, DeltaTable) else early.scan().to_arrow()
    assert sorted(old["queueOffset"].to_pylist()) == expected
    assert numbers(format_, path) == expected


@with_versions
def test_a_merge_that_comes_too_late(tmp_path: Path, format_: Format) -> None:
    path = tmp_path / "table"
    table = open_table(options(path, format_))
    for number in range(3):
        add(table, number, [row(number)])
    late = [merge(job) for job in table.merges(is_last=True)]
    if format_ is Format.DELTA:
        DeltaTable(path).delete("queueOffset = 1")
    else:
        iceberg(path).delete("queueOffset = 1")
    table.replace(late)
    assert numbers(format_, path) == [0, 2]


def test_plain_files_appear_once_and_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table"
    given = options(path, Format.PARQUET)
    table = open_table(given)
    for number in range(4):
        add(table, number, [row(number), row(100 + number, "B")])
    assert compact(table, is_last=False) == 0
    assert data_files(Format.PARQUET, path) == []

    class PulledError(Exception):
        pass

    def pulled(*_: object) -> None:
        raise PulledError

    with monkeypatch.context() as power:
        merged = [merge(job) for job in table.merges(is_last=True)]
        power.setattr(parquet_table, "sync_directory", pulled)
        with pytest.raises(PulledError):  # the log is written, and nothing after it
            table.replace(merged)
    table = open_table(given)
    shown = data_files(Format.PARQUET, path)
    assert len(shown) == 2
    assert numbers(Format.PARQUET, path) == [0, 1, 2, 3, 100, 101, 102, 103]
    add(table, 4, [row(4)])
    assert compact(open_table(given)) == 1
    assert set(shown) < set(data_files(Format.PARQUET, path))
    assert numbers(Format.PARQUET, path) == [0, 1, 2, 3, 4, 100, 101, 102, 103]
    staged = path / "_mqlake"
    assert len(list(staged.rglob("*.parquet"))) == 8  # for readers that planned to read them
    open_table(given)
    assert len(list(staged.rglob("*.parquet"))) == 8
    late = parquet_table._now() + parquet_table.LINGER  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(parquet_table, "_now", lambda: late)
    open_table(given)
    assert not list(staged.rglob("*.parquet"))


def test_plain_files_wait_for_others_only_so_long(tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = open_table(options(path, Format.PARQUET, publish_after=0))
    add(table, 0, [row(0)])
    assert compact(table, is_last=False) == 1
    large = open_table(options(path, Format.PARQUET, target_file_size=1))
    add(large, 1, [row(1)])
    assert compact(large, is_last=False) == 1
    assert numbers(Format.PARQUET, path) == [0, 1]


@pytest.mark.parametrize("topic", ["支付" * 20, "%RETRY%" + "长" * 80, "x" * 249])
def test_topics_that_are_too_long_for_a_directory(tmp_path: Path, topic: str) -> None:
    given = options(tmp_path, Format.PARQUET, target_file_size=1)
    for number in range(2):
        table = open_table(given)
        add(table, number, [row(number, topic), row(number + 10, topic + "2")])
        table.replace([merge(job) for job in table.merges(is_last=True)])
        assert {file.topic for file in open_table(given).files()} == {topic, topic + "2"}
    rows = [one for batch in table.scan(("topic", "queueOffset")) for one in batch.to_pylist()]
    assert sorted(one["queueOffset"] for one in rows if one["topic"] == topic) == [0, 1]
    lake = ParquetLake(tmp_path)
    assert {file.topic for file in lake.files(())} == {topic, topic + "2"}
    assert len(lake.files((AnyText("topic", (topic,)),))) == 2
    assert numbers(Format.PARQUET, tmp_path) == [0, 1, 10, 11]


def test_remains_of_a_killed_attempt_go(tmp_path: Path) -> None:
    given = options(tmp_path / "table", Format.PARQUET)
    table = open_table(given)
    add(table, 0, [row(0)])
    from mqlake.lake.files.partition_writer import write_all
    from tests.lake.tables.tables import batch

    write_all(table.shape(FOLLOWER, 1), [batch([row(1)])])
    staged = tmp_path / "table" / "_mqlake" / "staged"
    assert len(list(staged.rglob("*.parquet"))) == 2
    open_table(given)
    assert len(list(staged.rglob("*.parquet"))) == 1


@with_versions
@pytest.mark.parametrize("text", ["topic", "day", "day, topic", "none"])
def test_other_partitions(tmp_path: Path, format_: Format, text: str) -> None:
    path, parts = tmp_path / "table", partition_parts(text)
    table = open_table(options(path, format_, partition_by=parts))
    rows = [row(n, "AB"[n % 2], 20_000 + n // 2 % 2) for n in range(8)]
    for number in range(3):
        add(table, number, rows)
    assert compact(table) == 2 ** len(parts)
    assert len(data_files(format_, path)) == 2 ** len(parts)
    assert numbers(format_, path) == sorted([*range(8)] * 3)
    found = {(one["topic"], one["body"]) for one in read(format_, path).to_pylist()}
    assert found == {(one["topic"], one["body"]) for one in rows}
    if format_ is Format.DELTA:
        assert DeltaTable(path).metadata().partition_columns == list(parts)
    else:
        assert [field.name for field in iceberg(path).spec().fields] == list(parts)
    add(open_table(options(path, format_, partition_by=parts)), 3, rows)
    other = () if parts else ("topic",)
    with pytest.raises(JobError, match="give that as --partition-by"):
        open_table(options(path, format_, partition_by=other))


def test_wrong_partitions(tmp_path: Path) -> None:
    for text in ("topics", "day,day", "", "topic,hour"):
        with pytest.raises(FormatError, match="--partition-by"):
            partition_parts(text)
    with pytest.raises(JobError, match="a Parquet table is partitioned by topic and day"):
        open_table(options(tmp_path / "p", Format.PARQUET, partition_by=("day",)))


def test_days_of_an_iceberg_table_are_days(tmp_path: Path) -> None:
    table = open_table(options(tmp_path / "table", Format.ICEBERG))
    add(table, 0, [row(0, day=20_000)])
    assert [file.day for file in table.files()] == ["2024-10-04"]


def test_a_refusal_of_the_disk_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = open_table(options(tmp_path / "table", Format.PARQUET))
    add(table, 0, [row(0)])
    add(table, 1, [row(1)])

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (job,) = table.merges(is_last=True)
    monkeypatch.setattr(compaction, "FileWriter", refused)
    with pytest.raises(DiskError, match="No space left on device"):
        merge(job)
