"""DuckDB, and the snippets of the how-to page, read the tables of `follow` without warnings.

pytest turns every warning into an error.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

from mqlake.lake.options import Format
from mqlake.lake.tables.opening import open_table
from tests.lake.tables.tables import DAY, add, iceberg, options, row

COUNT = 40


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A table of two topics and two days, in two commits."""
    format_: Format = request.param
    table = open_table(options(tmp_path / "table", format_))
    for number in range(2):
        rows = range(number * COUNT // 2, (number + 1) * COUNT // 2)
        add(table, number, [row(one, "AB"[one % 2], 20_000 + number) for one in rows])
    if format_ is Format.PARQUET:
        from mqlake.lake.files.compaction import merge

        table.replace([merge(job) for job in table.merges(is_last=True)])
    return tmp_path / "table"


def of(*formats: Format) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("place", formats, indirect=True, ids=lambda one: one.value)


QUERY = (
    "SELECT topic, count(*), min(body), max(epoch_us(storeTimestamp)) FROM {} GROUP BY 1 ORDER BY 1"
)
EXPECTED = [
    ("A", COUNT // 2, b"0", 20_001 * DAY + COUNT - 2),
    ("B", COUNT // 2, b"1", 20_001 * DAY + COUNT - 1),
]


@of(Format.PARQUET)
def test_duckdb_reads_parquet(place: Path) -> None:
    files = f"read_parquet('{place}/topic=*/*/*.parquet', hive_partitioning = true)"
    assert duckdb.sql(QUERY.format(files)).fetchall() == EXPECTED


@of(Format.DELTA)
def test_duckdb_reads_delta(place: Path) -> None:
    messages = DeltaTable(place).to_pyarrow_dataset()
    assert messages is not None
    assert duckdb.sql(QUERY.format("messages")).fetchall() == EXPECTED


@of(Format.ICEBERG)
def test_duckdb_reads_iceberg(place: Path) -> None:
    messages = iceberg(place).scan().to_arrow()
    assert messages is not None
    assert duckdb.sql(QUERY.format("messages")).fetchall() == EXPECTED


@of(Format.DELTA)
def test_one_topic_of_a_delta_table(place: Path) -> None:
    found = DeltaTable(place).to_pyarrow_table(filters=[("topic", "=", "A")])
    assert sorted(found["queueOffset"].to_pylist()) == list(range(0, COUNT, 2))
