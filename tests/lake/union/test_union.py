"""A table and the log after it, read as one, whatever happens to both."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from deltalake import DeltaTable

from mqlake.errors import FormatError, JobError, StoreError
from mqlake.jobs.archive.job import archive
from mqlake.lake.followers.identity import CheckpointIdentity, note_query
from mqlake.lake.options import Format
from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.lake.union import followed
from mqlake.lake.union.plan import plan_union
from mqlake.lake.union.read import LakeTask
from mqlake.query.reading.conditions import (
    AnyNumber,
    AnyText,
    Between,
    HasKey,
    InQueues,
    Selection,
    TopicMatches,
)
from mqlake.query.store.options import read_options
from mqlake.spark.data_source import RocketMQDataSource
from mqlake.storage.object_target import LocalTarget
from tests.lake.tables.tables import iceberg
from tests.lake.union.kept_lake import FOLLOWER, KeptLake, rows_of, union_rows
from tests.query.store.growing import GrowingStore
from tests.query.store.rows import Row
from tests.store.make_store import START

every_format = pytest.mark.parametrize("format_", Format)


@every_format
@pytest.mark.parametrize("seed", range(3))
def test_each_message_once_whatever_happens(tmp_path: Path, format_: Format, seed: int) -> None:
    lake, chance = KeptLake(tmp_path, format_, seed), random.Random(seed)
    lake.take(0)
    steps: list[Callable[[], object]] = [
        lambda: lake.grow(chance.randint(1, 30)),
        lambda: lake.take(chance.randint(0, 40)),
        lambda: lake.take(chance.randint(1, 40), is_committed=False),
        lake.compact,
        lake.drop_segments,
    ]
    for _ in range(12):
        chance.choice(steps)()
        assert lake.rows() == lake.expected()


@every_format
def test_a_plan_holds_while_the_table_goes_on(tmp_path: Path, format_: Format) -> None:
    lake = KeptLake(tmp_path, format_)
    for _ in range(3):
        lake.take(7)
    given = lake.given()
    tasks = plan_union(read_options(given, streaming=False), ["topic"])
    expected = lake.expected()
    lake.compact()
    lake.grow(40)
    lake.take()
    lake.compact()
    assert rows_of(tasks, given) == expected


@every_format
def test_before_the_first_batch(tmp_path: Path, format_: Format) -> None:
    lake = KeptLake(tmp_path, format_)
    if format_ is Format.PARQUET:
        lake.table.shape("", 0)
    assert lake.rows() == lake.expected()


SELECTIONS: dict[str, tuple[Selection, Callable[[Row], bool]]] = {
    "topic": ((AnyText("topic", ("A", "no")),), lambda row: row["topic"] == "A"),
    "pattern": ((TopicMatches("[B-Z]"),), lambda row: row["topic"] == "B"),
    "offsets": ((Between("queueOffset", 3, 5),), lambda row: 3 <= row["queueOffset"] <= 5),
    "queues": ((AnyNumber("queueId", (0, 2)),), lambda row: row["queueId"] != 1),
    "nothing": ((AnyNumber("queueId", ()),), lambda _: False),
    "time": (
        (Between("storeTimestamp", START + 10, START + 50),),
        lambda row: START + 10 <= row["storeTimestamp"] <= START + 50,
    ),
    "key": ((HasKey(("key-3", "key-70")),), lambda row: row["keys"] in (["key-3"], ["key-70"])),
    "no unique key": ((AnyText("uniqKey", ("x",)),), lambda _: False),
    "ranges": (
        (InQueues({("A", 1): (2, 9), ("B", 0): (1, 3)}, others=False),),
        lambda row: (
            ((row["topic"], row["queueId"]) == ("A", 1) and 2 <= row["queueOffset"] < 9)
            or ((row["topic"], row["queueId"]) == ("B", 0) and 1 <= row["queueOffset"] < 3)
        ),
    ),
}


@every_format
def test_what_a_query_wants(tmp_path: Path, format_: Format) -> None:
    lake = KeptLake(tmp_path, format_)
    lake.take(8)
    lake.grow(60)
    lake.take(50)
    lake.drop_segments()
    for name, (selection, holds) in SELECTIONS.items():
        wanted = [row for row in lake.expected() if holds(row)]
        assert lake.rows(selection) == wanted, name
        narrow = [{"body": row["body"]} for row in wanted]
        found = lake.rows(selection, columns="body")
        assert sorted(found, key=str) == sorted(narrow, key=str), name


@pytest.mark.parametrize("format_", [Format.DELTA, Format.ICEBERG])
@pytest.mark.parametrize("parts", [(), ("day",), ("topic",)])
def test_tables_with_other_partitions(
    tmp_path: Path, format_: Format, parts: tuple[str, ...]
) -> None:
    lake = KeptLake(tmp_path, format_, parts=parts)
    lake.take(8)
    lake.compact()
    lake.grow(60)
    lake.take(50)
    for name, (selection, holds) in SELECTIONS.items():
        assert lake.rows(selection) == [row for row in lake.expected() if holds(row)], name
    with pytest.raises(StoreError, match="topic 'C' does not exist"):
        lake.rows(subscribe="C")


@every_format
def test_options(tmp_path: Path, format_: Format) -> None:
    lake = KeptLake(tmp_path, format_)
    lake.take(8)
    lake.grow(60)
    lake.take(50)
    lake.drop_segments()
    rows = lake.expected()
    wanted: dict[str, tuple[dict[str, Any], Callable[[Row], bool]]] = {
        "subscribe": ({"subscribe": "A"}, lambda row: row["topic"] == "A"),
        "keys": ({"keys": "key-1 key-60"}, lambda row: row["keys"] in (["key-1"], ["key-60"])),
        "assign": (
            {"assign": '{"B": [2]}'},
            lambda row: (row["topic"], row["queueId"]) == ("B", 2),
        ),
        "offsets": (
            {
                "startingOffsets": '{"A": {"0": 4, "1": -2}}',
                "endingOffsets": '{"A": {"0": 7, "2": 0}}',
            },
            lambda row: (
                row["topic"] == "B"
                or row["queueId"] == 1
                or (row["queueId"] == 0 and 4 <= row["queueOffset"] < 7)
            ),
        ),
        "times": (
            {"startingTimestamp": START + 5, "endingTimestamp": START + 75},
            lambda row: START + 5 <= row["storeTimestamp"] < START + 75,
        ),
    }
    for name, (given, holds) in wanted.items():
        assert lake.rows(**given) == [row for row in rows if holds(row)], name


@every_format
def test_files_without_wanted_rows_are_not_read(tmp_path: Path, format_: Format) -> None:
    lake = KeptLake(tmp_path, format_)
    for _ in range(6):
        lake.grow(10)
        lake.take()

    def files(*selection: Any) -> int:
        options = read_options(lake.given(), streaming=False)
        tasks = plan_union(options, ["topic"], selection)
        return sum(len(task.files) for task in tasks if isinstance(task, LakeTask))

    assert files() == 12
    assert files(AnyText("topic", ("A",))) == 6
    assert files(TopicMatches("C")) == 0
    if format_ is not Format.PARQUET:
        assert files(Between("storeTimestamp", START + 60, START + 65)) < 4
        assert files(Between("physicalOffset", lake.end)) == 0


def test_a_followed_part_of_the_topics(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.DELTA, source={"subscribe": "B"})
    lake.take(8)
    assert lake.rows() == [row for row in lake.expected() if row["topic"] == "B"]
    with pytest.raises(FormatError, match="the table does not follow topic 'A'"):
        lake.rows(subscribe="A")


def test_batches_that_brought_nothing(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.DELTA, source={"subscribe": "B"})
    lake.take()
    lake.grow(80, topics=("A",))
    checkpoint = lake.options.checkpoint
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True)
    identity = CheckpointIdentity(FOLLOWER, str(lake.store.path), "", {"physicalOffset": 0})
    (checkpoint / "mqlake-follow.json").write_bytes(msgspec.json.encode(identity))
    end = max(lake.truth)
    (checkpoint / "offsets" / "3").write_text(f'v1\n{{}}\n{{"physicalOffset": {end}}}\n')
    (checkpoint / "commits" / "3").write_text("v1\n{}")
    (checkpoint / "commits" / ".3.crc").touch()
    lake.drop_segments(end)
    options = read_options(lake.given(), streaming=False)
    _, (one,) = followed.open_followed(options)
    assert one.start == end
    assert lake.rows() == [row for row in lake.expected() if row["topic"] == "B"]


@every_format
def test_topics_that_do_not_exist(tmp_path: Path, format_: Format) -> None:
    lake = KeptLake(tmp_path, format_)
    lake.take()
    wrong: list[dict[str, Any]] = [{"subscribe": "A,C"}, {"assign": '{"C": [0]}'}]
    for given in wrong:
        with pytest.raises(StoreError, match="topic 'C' does not exist"):
            lake.rows(**given)
    assert lake.rows(subscribe="C", failOnDataLoss="false") == []


def test_a_topic_that_only_the_table_has(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.ICEBERG)
    lake.take()
    for path in sorted((lake.store.path / "consumequeue").glob("A/*/*")):
        path.unlink()
    late = (Between("storeTimestamp", START + 1000),)
    assert lake.rows(late, subscribe="A") == []
    assert lake.rows(subscribe="A")


def test_a_log_that_is_another_one(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.DELTA)
    lake.take(15)
    other = KeptLake(tmp_path / "other", Format.DELTA, seed=1)
    with pytest.raises(StoreError, match="not the one that the table has"):
        lake.rows(path=other.store.path)
    lake.grow(80)
    lake.take()
    with pytest.raises(StoreError, match="the log was cut, or is another one"):
        lake.rows(path=other.store.path)


def test_a_log_that_was_deleted_before_the_table_had_it(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.DELTA)
    lake.take(3)
    lake.grow(80)
    lake.store.drop_first_segment()
    begin = lake.store.drop_first_segment()
    with pytest.raises(StoreError, match="were deleted before mqlake follow read them"):
        lake.rows()
    there = [row for row in lake.expected() if not lake.end <= row["physicalOffset"] < begin]
    assert lake.rows(failOnDataLoss="false") == there


def test_retention_between_two_looks_of_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = KeptLake(tmp_path, Format.ICEBERG)
    lake.take(3)
    lake.grow(80)
    open_table, was_opened = followed.open_table, False

    def open_late(options: Any) -> Any:
        nonlocal was_opened
        found = open_table(options)
        if not was_opened:
            was_opened = True
            lake.take(70)
            lake.drop_segments()
        return found

    monkeypatch.setattr(followed, "open_table", open_late)
    assert lake.rows() == lake.expected()


def test_deleted_rows_stay_deleted(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.DELTA)
    lake.take(12)
    DeltaTable(lake.out).delete("queueOffset = 0 and topic = 'A'")
    there = [
        row
        for row in lake.expected()
        if row["physicalOffset"] >= lake.end or row["topic"] == "B" or row["queueOffset"]
    ]
    assert lake.rows() == there


def test_rows_that_a_deletion_vector_names(tmp_path: Path) -> None:
    from dataclasses import replace

    lake = KeptLake(tmp_path, Format.DELTA)
    lake.take()
    given = lake.given()
    (task,) = plan_union(read_options(given, streaming=False), ["topic"])
    assert isinstance(task, LakeTask)
    whole = replace(task, files=task.files[:1])
    rows = rows_of([whole], given)
    marked = replace(whole.files[0], deleted=np.array([0, 3]))
    found = rows_of([replace(whole, files=(marked,))], given)
    assert found == [row for number, row in enumerate(rows) if number not in (0, 3)]


@pytest.mark.parametrize("is_rewritten", [False, True])
def test_columns_that_another_program_renamed(tmp_path: Path, is_rewritten: bool) -> None:
    lake = KeptLake(tmp_path, Format.ICEBERG, parts=("topic",))
    lake.take(12)
    with iceberg(lake.out).update_schema() as update:
        update.rename_column("body", "payload")
        update.rename_column("topic", "subject")
        update.rename_column("queueOffset", "body")
    if is_rewritten:
        table = iceberg(lake.out)
        table.overwrite(table.scan().to_arrow())
    lake.take(4)
    lake.grow(5)
    assert lake.rows() == lake.expected()
    wanted = [
        row for row in lake.expected() if row["topic"] == "A" and row["queueOffset"] in (2, 3)
    ]
    pushed = (AnyText("topic", ("A",)), Between("queueOffset", 2, 3))
    assert wanted
    assert lake.rows(pushed) == wanted


def test_wrong_options(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.DELTA)
    lake.take()
    by_time = '{"A": {"0": 1700000000000}}'
    wrong: dict[str, dict[str, Any]] = {
        "use startingTimestamp": {"startingOffsetsByTimestamp": by_time},
        "maxRecordsPerPartition": {"maxRecordsPerPartition": 5},
        "there is no column": {"columns": "topi"},
    }
    for text, given in wrong.items():
        with pytest.raises(FormatError, match=text):
            lake.rows(**given)
    with pytest.raises(FormatError, match="a streaming query reads only the log"):
        read_options(lake.given(), streaming=True)
    with pytest.raises(JobError, match="mqlake follow does not write this table"):
        lake.rows(table=tmp_path)
    with pytest.raises(FormatError, match=r"option table: .* is neither a directory nor on an"):
        lake.rows(table="ftp://bucket/table")
    with pytest.raises(JobError, match="the catalog does not have this table"):
        lake.rows(table="a.b", catalog=f"sqlite:///{tmp_path}/catalog.db")


def test_a_log_whose_beginning_is_in_an_archive(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.DELTA)
    lake.take(3)
    lake.grow(80)
    archive(lake.store.path, LocalTarget(tmp_path / "archive"))
    lake.store.drop_first_segment()
    lake.store.drop_first_segment()
    assert lake.rows(archive=tmp_path / "archive") == lake.expected()
    alone = {"table": str(lake.out), "archive": str(tmp_path / "archive")}
    assert union_rows(alone) == lake.expected()


def test_several_paths_are_refused(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.DELTA)
    lake.take(3)
    source = RocketMQDataSource(lake.given(path=f"{lake.store.path},{tmp_path}"))
    with pytest.raises(FormatError, match="path names several stores: leave path out"):
        source.schema()


@pytest.mark.parametrize("source", [{}, {"subscribe": "C"}])
def test_topics_of_several_stores(tmp_path: Path, source: dict[str, str]) -> None:
    lake = KeptLake(tmp_path, Format.DELTA, source=source and {"subscribe": "A,B"})
    lake.take(8)
    other = GrowingStore(tmp_path / "other", seed=5)
    other.grow(12, topics=("C",))
    second = msgspec.structs.replace(lake.options, store=other.path, source=source)
    note_query(second, CheckpointIdentity("f" * 32, str(other.path), "", {"physicalOffset": 0}))
    given = {"table": str(lake.out), "columns": "topic,physicalOffset"}
    in_a = sum(row["topic"] == "A" for row in lake.expected())
    for topics, count in (("A", in_a), ("C", 12), ("A,C", in_a + 12)):
        assert len(union_rows({**given, "subscribe": topics})) == count
    wrong = FormatError if source else StoreError
    with pytest.raises(wrong, match="topic 'Z'"):
        union_rows({**given, "subscribe": "C,Z"})


@pytest.mark.parametrize("format_", list(Format))
def test_an_end_that_an_earlier_mqlake_did_not_note(tmp_path: Path, format_: Format) -> None:
    """It committed a batch after that of the noted end: the checkpoint says where it ends."""
    lake = KeptLake(tmp_path, format_)
    lake.take(8)
    noted = lake.end
    lake.take(5)
    newest = lake.batch - 1
    lake.grow(10)
    lake.table.commit(FOLLOWER, newest, [], end=CommittedEnd(noted, None, newest - 1))
    _write_checkpoint(lake, newest, lake.end)
    assert lake.rows() == lake.expected()


def _write_checkpoint(lake: KeptLake, batch: int, end: int) -> None:
    """Write what Spark keeps of a batch that it has not noted as done."""
    offsets = lake.options.checkpoint / "offsets"
    offsets.mkdir(parents=True)
    (offsets / str(batch)).write_text(f'v1\n{{}}\n{{"physicalOffset":{end}}}')
