"""A table that other programs change between batches keeps each value in its column."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.types import StringType

from mqlake.lake.files.compaction import merge
from mqlake.lake.files.field_ids import ids_of
from mqlake.lake.files.iceberg_columns import COLUMNS as NOTED
from mqlake.lake.files.iceberg_columns import NAME_MAPPING
from mqlake.lake.files.partition_writer import FileShape, write_all
from mqlake.lake.options import Format
from mqlake.lake.tables import iceberg_table
from mqlake.lake.tables.evolution import SchemaConflictError, UnwritableTableError
from mqlake.lake.tables.opening import open_table
from mqlake.lake.tables.table import LakeTable
from tests.lake.tables.others import COLUMNS, Touched
from tests.lake.tables.tables import FOLLOWER, add, batch, data_files, iceberg, options, read, row

SEEDS = int(os.environ.get("TOUCHED_SEEDS", "3"))
STEPS = 16


def check(touched: Touched, history: list[str]) -> None:
    assert touched.found() == touched.expected(), history
    assert touched.scanned() == touched.messages(), history


def run(touched: Touched, steps: int = STEPS) -> None:
    history: list[str] = []
    for _ in range(steps):
        step = touched.random.choice(touched.steps())
        history.append(step.__name__)
        step()
        check(touched, history)
    touched.follow()
    touched.compact()
    check(touched, [*history, "follow", "compact"])


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("format_", [Format.DELTA, Format.ICEBERG])
def test_rows_are_what_followers_and_others_made_them(
    tmp_path: Path, format_: Format, seed: int
) -> None:
    touched = Touched(tmp_path / "table", format_, Random(f"{seed}/{format_}"))
    touched.follow()
    run(touched)


def add_as_before(
    table: LakeTable, number: int, rows: Any, columns: tuple[str, ...] = COLUMNS
) -> None:
    """Commit a batch as an earlier version did: files without field ids, and a name mapping."""
    shape = table.shape(FOLLOWER, number)
    assert isinstance(shape, FileShape)
    plain = pa.schema([pa.field(one.name, _without_ids(one.type)) for one in shape.schema])
    files = write_all(replace(shape, schema=plain), [batch(rows, columns)])
    for file in files:
        assert set(ids_of(parquet.read_schema(file.path))) == {None}
    opened = iceberg(Path(shape.directory).parent)
    with opened.transaction() as transaction:
        mapping = opened.schema().name_mapping.model_dump_json()
        transaction.set_properties({NAME_MAPPING: mapping})
        if NOTED in opened.properties:
            transaction.remove_properties(NOTED)
    table.last_batch(FOLLOWER)
    table.commit(FOLLOWER, number, files)


def _without_ids(type_: Any) -> Any:
    """Return a type without field ids in its parts."""
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, type_.item_type)
    return pa.list_(type_.value_type) if pa.types.is_list(type_) else type_


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_table_of_an_earlier_version_is_upgraded(tmp_path: Path, seed: int) -> None:
    random = Random(f"{seed}/earlier")
    path = tmp_path / "table"
    touched = Touched(path, Format.ICEBERG, random, add_as_before, has_ids=False)
    for _ in range(3):
        touched.follow()
    properties = iceberg(touched.path).properties
    assert NOTED not in properties
    assert NAME_MAPPING in properties
    for step in (touched.rename, touched.drop, touched.move, touched.widen):
        step()
        check(touched, [step.__name__])
    touched.write = add
    touched.reopen()
    run(touched, STEPS // 2)


def test_merging_gives_old_files_their_field_ids(tmp_path: Path) -> None:
    path = tmp_path / "table"
    touched = Touched(path, Format.ICEBERG, Random(5), add_as_before, has_ids=False)
    for _ in range(2):
        touched.follow()
    touched.rename()
    touched.write = add
    touched.follow()
    touched.compact()
    check(touched, [])
    for file in data_files(Format.ICEBERG, path):
        schema = parquet.read_schema(file.removeprefix("file://"))
        assert None not in ids_of(schema)
        assert set(schema.names) == set(COLUMNS)


def test_the_name_mapping_of_others_stays(tmp_path: Path) -> None:
    path = tmp_path / "table"
    open_table(options(path, Format.ICEBERG))
    topic = iceberg(path).schema().find_field("topic").field_id
    mapping = (
        f'[{{"field-id": {topic}, "names": ["topic", "subject"]}},'
        ' {"field-id": 77, "names": ["uniqKey"]}]'
    )
    with iceberg(path).transaction() as transaction:
        transaction.set_properties({NAME_MAPPING: mapping})
    wider = ("topic", "body", "queueOffset", "storeTimestamp", "msgId")
    add(open_table(options(path, Format.ICEBERG, columns=wider)), 0, [row(0, msgId="m")], wider)
    found = iceberg(path).name_mapping()
    assert found is not None
    names = {one.field_id: one.names for one in found}
    assert (names[topic], names[77]) == (["topic", "subject"], ["uniqKey"])
    assert read(Format.ICEBERG, path)["msgId"].to_pylist() == ["m"]


def test_a_column_that_was_dropped_stays_dropped_until_it_is_added(tmp_path: Path) -> None:
    path = tmp_path / "table"
    given = options(path, Format.ICEBERG, columns=COLUMNS)
    table = open_table(given)
    add(table, 0, [row(0, tags="old")], COLUMNS)
    with iceberg(path).update_schema() as update:
        update.delete_column("tags")
    add(table, 1, [row(1, tags="lost")], COLUMNS)
    assert "tags" not in read(Format.ICEBERG, path).column_names
    assert "tags" not in table.column_names()
    with iceberg(path).update_schema() as update:
        update.add_column("tags", StringType())
    add(open_table(given), 2, [row(2, tags="new")], COLUMNS)
    found = sorted(read(Format.ICEBERG, path).to_pylist(), key=lambda one: one["queueOffset"])
    assert [one["tags"] for one in found] == [None, None, "new"]


def test_a_batch_is_committed_although_others_commit_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "table"
    given = options(path, Format.ICEBERG, columns=COLUMNS, partition_by=("topic",))
    table = open_table(given)
    add(table, 0, [row(0), row(1)], COLUMNS)
    files = write_all(table.shape(FOLLOWER, 1), [batch([row(2)], COLUMNS)])
    iceberg(path).delete("queueOffset = 1")
    with iceberg(path).update_schema() as update:
        update.rename_column("body", "payload")
    table.commit(FOLLOWER, 1, files)
    found = sorted(read(Format.ICEBERG, path).to_pylist(), key=lambda one: one["queueOffset"])
    assert [(one["queueOffset"], one["payload"]) for one in found] == [(0, b"0"), (2, b"2")]
    assert table.last_batch(FOLLOWER) == 1


def test_a_newer_format_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table(options(tmp_path / "table", Format.ICEBERG))
    for number in range(3):
        add(table, number, [row(number)])
    assert len(table.merges(is_last=True)) == 1
    monkeypatch.setattr(iceberg_table, "NEWEST_VERSION", 1)
    before = sorted((tmp_path / "table").rglob("*"))
    table.expire(0)
    assert table.merges(is_last=True) == []
    assert sorted((tmp_path / "table").rglob("*")) == before
    with pytest.raises(UnwritableTableError, match="format version 2, and PyIceberg writes"):
        table.shape(FOLLOWER, 3)


def test_the_first_batch_of_a_topic_may_be_written_before_its_table(tmp_path: Path) -> None:
    given = options(tmp_path / "topics", Format.ICEBERG, columns=COLUMNS, is_per_topic=True)
    tables = open_table(given)
    for number in range(3):
        add(tables, number, [row(number, "A"), row(10 + number, "B")], COLUMNS)
    one = tmp_path / "topics" / "A"
    with iceberg(one).update_schema() as update:
        update.rename_column("body", "payload")
    add(tables, 3, [row(3, "A")], COLUMNS)
    assert sorted(read(Format.ICEBERG, one)["payload"].to_pylist()) == [b"0", b"1", b"2", b"3"]
    tables.replace([merge(job) for job in tables.merges(is_last=True)])
    assert sorted(read(Format.ICEBERG, one)["payload"].to_pylist()) == [b"0", b"1", b"2", b"3"]
    found = [one for batch in tables.scan(("topic", "body")) for one in batch.to_pylist()]
    assert sorted(one["body"] for one in found) == [b"0", b"1", b"10", b"11", b"12", b"2", b"3"]


def test_a_column_that_must_not_be_null_is_refused_if_messages_lack_it(tmp_path: Path) -> None:
    path = tmp_path / "table"
    given = options(path, Format.ICEBERG, columns=COLUMNS)
    table = open_table(given)
    with iceberg(path).update_schema(allow_incompatible_changes=True) as update:
        update.update_column("body", required=True)
    add(table, 0, [row(0, keys=[], properties=[], queueId=1)], COLUMNS)
    with iceberg(path).update_schema(allow_incompatible_changes=True) as update:
        update.update_column("tags", required=True)
    with pytest.raises(SchemaConflictError, match="column tags may not be null there, and is null"):
        table.shape(FOLLOWER, 1)
    with iceberg(path).update_schema(allow_incompatible_changes=True) as update:
        update.update_column("tags", required=False)
    with iceberg(path).update_schema() as update:
        update.rename_column("body", "payload")
    add(table, 1, [row(1, keys=[], properties=[], queueId=1)], COLUMNS)
    assert sorted(read(Format.ICEBERG, path)["payload"].to_pylist()) == [b"0", b"1"]
