"""Each file's bounds contain all of its values, whatever bodies of messages contain."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import dataset

from mqlake.lake.files.data_file import LONGEST_BOUND, DataFile, FileWriter
from mqlake.lake.files.lake_files import LakeFiles
from mqlake.lake.files.partition_writer import write_all
from mqlake.lake.options import Format
from mqlake.lake.tables.evolution import wanted_schema
from mqlake.lake.tables.opening import open_table
from tests.lake.tables.tables import COLUMNS, FOLLOWER, add, batch, numbers, options, row

TIME = pa.timestamp("us", "UTC")
YEAR_10000 = 253_402_300_800_000_000


def file_of(path: Path, values: list[Any], kind: Any) -> DataFile:
    schema = pa.schema([pa.field("value", kind)])
    writer = FileWriter(LakeFiles(), str(path), "file", schema)
    writer.write([pa.record_batch([pa.array(values, kind)], schema=schema)])
    return writer.finish("A", "2026-01-01")


@pytest.mark.parametrize("format_", Format)
@pytest.mark.parametrize("time", [YEAR_10000, 1 << 62, -YEAR_10000])
def test_times_that_python_does_not_have_end_no_follow(
    tmp_path: Path, format_: Format, time: int
) -> None:
    path = tmp_path / "table"
    given = options(path, format_, body_fields=pa.schema([pa.field("at", TIME)]))
    table, schema = open_table(given), wanted_schema(given)
    rows = batch([row(0)])
    at = pa.array([time], pa.int64()).cast(TIME)
    rows = pa.RecordBatch.from_arrays([*rows.columns, at], schema=schema)
    table.commit(FOLLOWER, 0, write_all(table.shape(FOLLOWER, 0), [rows]))
    assert table.last_batch(FOLLOWER) == 0
    (found,) = (one for one in table.scan(("at",)) if one.num_rows)
    assert found.column("at").cast(pa.int64()).to_pylist() == [time]


def test_a_time_is_before_its_upper_bound(tmp_path: Path) -> None:
    file = file_of(tmp_path, [1_999], TIME)
    assert (file.least["value"], file.most["value"]) == (
        "1970-01-01T00:00:00.001Z",
        "1970-01-01T00:00:00.002Z",
    )


@pytest.mark.parametrize("end", ["", "x", "\ud7ff", "\U0010ffff"])
def test_a_long_text_is_between_short_bounds(tmp_path: Path, end: str) -> None:
    text = "x" * (LONGEST_BOUND - 1) + end + "long" * 50
    file = file_of(tmp_path, [text], pa.string())
    least, most = file.least["value"], file.most["value"]
    assert max(len(least), len(most)) <= LONGEST_BOUND
    assert least.encode() <= text.encode() < most.encode()


def test_a_text_of_last_characters_has_no_bounds(tmp_path: Path) -> None:
    assert file_of(tmp_path, ["\U0010ffff" * 100], pa.string()).most == {}


def test_readers_find_rows_by_long_texts(tmp_path: Path) -> None:
    path, columns, text = tmp_path / "table", (*COLUMNS, "tags"), "long" * 50
    table = open_table(options(path, Format.DELTA, columns=columns))
    add(table, 0, [row(0, tags=text), row(1, tags="short")], columns)
    found = DeltaTable(path).to_pyarrow_dataset()
    assert found.to_table(filter=dataset.field("tags") == text).num_rows == 1
    assert numbers(Format.DELTA, path) == [0, 1]
