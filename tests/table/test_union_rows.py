from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import mqlake
from mqlake.errors import FormatError
from mqlake.lake.options import Format
from tests.lake.union.kept_lake import KeptLake


@pytest.mark.parametrize("format_", Format)
def test_a_table_and_the_newer_messages_of_its_log_are_one(tmp_path: Path, format_: Format) -> None:
    lake = KeptLake(tmp_path, format_)
    lake.take()
    lake.compact()
    lake.grow(15)
    lake.drop_segments()
    table = mqlake.open(lake.store.path, table=str(lake.out))
    rows = table.select("physicalOffset", "body").to_arrow().to_pylist()
    found = {row["physicalOffset"]: row["body"] for row in rows}
    assert len(rows) == len(lake.truth)
    assert found == {row["physicalOffset"]: row["body"] for row in lake.expected()}


@pytest.mark.parametrize("format_", Format)
def test_duckdb_reads_a_topic_that_only_the_table_still_has(
    tmp_path: Path, format_: Format
) -> None:
    lake = KeptLake(tmp_path, format_)
    lake.grow(5, ("Gone",))
    lake.take()
    lake.compact()
    lake.grow(60, ("A",))
    lake.drop_segments()
    expected = sum(row["topic"] == "Gone" for row in lake.truth.values())
    connection = duckdb.connect()
    connection.register("messages", mqlake.open(lake.store.path, table=str(lake.out)).dataset())
    query = "select count(*) from messages where topic = 'Gone'"
    assert connection.sql(query).fetchall() == [(expected,)]
    everything = connection.sql("select count(*), min(storeTimestamp) from messages").fetchall()
    assert everything[0][0] == len(lake.truth)


def test_several_stores_with_a_table_are_refused(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.PARQUET)
    with pytest.raises(FormatError, match="option table"):
        mqlake.open([lake.store.path, lake.store.path], table=str(lake.out))


def test_a_union_has_no_explanation(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.PARQUET)
    lake.take()
    with pytest.raises(FormatError, match="no explanation"):
        mqlake.open(lake.store.path, table=str(lake.out)).explain()
