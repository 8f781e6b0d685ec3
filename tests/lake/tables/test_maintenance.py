"""Old versions go, and with them the files that only they had; nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import parquet

from mqlake.errors import JobError
from mqlake.lake.files.compaction import LARGEST, merge, small_files
from mqlake.lake.files.data_file import DataFile
from mqlake.lake.options import Format
from mqlake.lake.tables.iceberg_catalog import without_secrets
from mqlake.lake.tables.opening import open_table
from mqlake.lake.tables.table import LakeTable
from tests.lake.tables.tables import add, iceberg, numbers, options, row

TARGET = 100
with_versions = pytest.mark.parametrize("format_", [Format.DELTA, Format.ICEBERG])


def compact(table: LakeTable) -> None:
    table.replace([merge(job) for job in table.merges(is_last=True)])


def on_disk(path: Path) -> set[str]:
    return {found.name for found in path.rglob("mqlake-*.parquet")}


@with_versions
def test_files_of_old_versions_go(tmp_path: Path, format_: Format) -> None:
    path = tmp_path / "table"
    table = open_table(options(path, format_))
    state = path / "_mqlake" / "checkpoint" / "mqlake-state.parquet"
    state.parent.mkdir(parents=True)
    state.touch()
    os.utime(state, (1, 1))
    for number in range(6):
        add(table, number, [row(number), row(100 + number, "B")])
    compact(table)
    before = on_disk(path)
    for keep in (60, 1800, 3600):
        table.expire(keep)
        assert on_disk(path) == before  # younger than that
    assert len(before) == 12 + 2 + 1

    table.expire(0)
    assert len(on_disk(path)) == 2 + 1
    assert state.exists()
    assert numbers(format_, path) == [0, 1, 2, 3, 4, 5, 100, 101, 102, 103, 104, 105]
    add(table, 6, [row(6)])
    table.expire(0)
    assert numbers(format_, path)[:7] == [0, 1, 2, 3, 4, 5, 6]
    assert open_table(options(path, format_)).last_batch("0" * 32) == 6


def test_old_snapshots_and_their_manifests_go(tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = open_table(options(path, Format.ICEBERG))
    for number in range(8):
        add(table, number, [row(number)])
    manifests = len(list((path / "metadata").glob("*.avro")))
    assert len(iceberg(path).metadata.snapshots) == 8
    table.expire(0)
    assert len(iceberg(path).metadata.snapshots) == 1
    assert len(list((path / "metadata").glob("*.avro"))) < manifests
    assert numbers(Format.ICEBERG, path) == list(range(8))


def file(number: int, size: int, day: str = "2024-01-02") -> DataFile:
    return DataFile(f"/t/{number:03}.parquet", "A", day, 1, size)


def sizes(files: list[DataFile], *, is_last: bool = False) -> list[int]:
    found = small_files(files, TARGET, "2024-01-02", is_last=is_last)
    return sorted(sum(one.size for one in group) for group in found)


def test_groups_have_the_target_size() -> None:
    many = [file(number, 7) for number in range(40)]
    assert sizes(many) == [70, 105, 105]
    large = [file(100, 120), file(101, 110)]
    assert sizes([*many[:5], *large]) == [35]
    assert sizes([*many[:5], *large], is_last=True) == [145]
    assert sizes(large, is_last=True) == []
    assert sizes([file(0, 90), file(1, 10)]) == [100]
    assert sizes([file(0, 80), file(1, 10)]) == []  # a file is not written again for so little
    assert sizes([file(0, 80), file(1, 10)], is_last=True) == [90]


def test_days_that_are_over_are_finished() -> None:
    old = [file(0, 130, "2024-01-01"), file(1, 20, "2024-01-01")]
    assert sizes(old) == [150]
    assert sizes([file(0, 130), file(1, 20)]) == []


@pytest.mark.parametrize("size", [1, 10, 60, 99])
def test_no_file_grows_for_ever(size: int) -> None:
    """What is written is at most some times what comes, and files are bounded."""
    there: list[DataFile] = []
    written = 0
    for number in range(400):
        there.append(file(number, size))
        if number % 10 == 9:
            for group in list(small_files(there, TARGET, "2024-01-02")):
                total = sum(one.size for one in group)
                there = [one for one in there if one not in group]
                there.append(file(1000 + written, total))
                written += total
    assert max(one.size for one in there) <= LARGEST * TARGET
    assert written <= 8 * 400 * size
    large = sum(one.size for one in there if one.size >= TARGET)
    assert large >= 0.9 * 400 * size or 400 * size < 10 * TARGET


def test_statistics_and_bloom_filters_of_merged_files(tmp_path: Path) -> None:
    path = tmp_path / "table"
    columns = ("topic", "queueOffset", "storeTimestamp", "tags", "uniqKey")
    table = open_table(options(path, Format.DELTA, columns=columns))
    for number in range(3):
        new = {"tags": "t", "uniqKey": f"{number:032X}"}
        message = {**row(number), **new}
        del message["body"]
        add(table, number, [message], columns)
    actions = pa.table(DeltaTable(path).get_add_actions(flatten=True)).to_pylist()
    bounds = sorted((one["min.uniqKey"], one["max.uniqKey"]) for one in actions)
    assert bounds == [(f"{number:032X}",) * 2 for number in range(3)]
    assert {(one["min.tags"], one["max.tags"]) for one in actions} == {("t", "t")}
    compact(table)
    (merged,) = DeltaTable(path).file_uris()
    group = parquet.read_metadata(merged).row_group(0)
    columns_by_name = {group.column(n).path_in_schema: group.column(n) for n in range(4)}
    assert columns_by_name["uniqKey"].bloom_filter_offset is not None
    assert columns_by_name["tags"].bloom_filter_offset is None


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    given = {"uri": "postgresql://me:word@host/db", "token": "t0ken", "type": "sql"}
    text = without_secrets("cannot connect to postgresql://me:word@host/db with t0ken", given)
    assert text == "cannot connect to postgresql://***@host/db with ***"
    wrong = options(
        tmp_path / "t",
        Format.ICEBERG,
        catalog="nonsense://me:word@host/db",
        catalog_options={"token": "t0ken", "type": "sql"},
    )
    with pytest.raises(JobError, match="this catalog cannot be opened") as raised:
        open_table(wrong)
    assert "word" not in str(raised.value)
    assert "t0ken" not in str(raised.value)


def test_a_catalog_by_its_options(tmp_path: Path) -> None:
    options_of = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db"}
    given = options(
        tmp_path / "lake", Format.ICEBERG, catalog_options=options_of, table="shop.messages"
    )
    add(open_table(given), 0, [row(0)])
    from pyiceberg.catalog import load_catalog

    table = load_catalog("default", **options_of).load_table("shop.messages")
    assert table.scan().to_arrow()["queueOffset"].to_pylist() == [0]
