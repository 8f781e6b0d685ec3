from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import parquet

import mqlake
from mqlake.console.sql.process import run
from mqlake.console.sql.queries import SqlQueries
from mqlake.console.sql.statement import SqlLimits, SqlResult
from mqlake.errors import MqlakeError
from mqlake.lake.options import Format
from tests.golden import store
from tests.lake.union.kept_lake import KeptLake
from tests.until import PATIENCE, until

STORE = "rmq5-clean"


def ask(sql: str, **limits: Any) -> SqlResult:
    queries = SqlQueries(SqlLimits(**{"seconds": PATIENCE, **limits}))
    return asyncio.run(queries.table("me", sql, str(store(STORE).path), None))


def dataset() -> Any:
    return mqlake.open(str(store(STORE).path), threads=2, failOnDataLoss=False).dataset()


def test_returns_names_types_and_rows() -> None:
    found = ask("select topic, count(*) as messages from messages group by all order by all")
    assert found.error is None
    assert found.columns == ["topic", "messages"]
    assert found.types == ["VARCHAR", "BIGINT"]
    assert all(isinstance(count, int) for _, count in found.rows)
    assert not found.is_cut


def test_a_result_is_cut_and_says_so() -> None:
    found = ask("select physicalOffset, body from messages", rows=7)
    assert len(found.rows) == 7
    assert found.is_cut
    assert ask("select * from messages", output=3000).is_cut


REFUSED = (
    "select * from read_csv('/etc/passwd')",
    "select * from read_text('/etc/passwd')",
    "select * from '/etc/passwd'",
    "select * from glob('/*')",
    "select * from read_parquet('https://example.org/x.parquet')",
    "select * from queries",
    "copy messages to '/tmp/leak.csv'",
    "attach '/tmp/leak.db'",
    "install httpfs",
    "load httpfs",
    "set memory_limit = '99GB'",
    "set lock_configuration = false",
    "create table copied as select * from messages",
    "select 1; select 2",
    "explain analyze select 1",
    "",
    "-- nothing",
    "selec 1",
)


@pytest.mark.parametrize("sql", REFUSED)
def test_files_networks_and_changes_are_refused(sql: str) -> None:
    """Those below are refused by the process of a query, too, which takes a second to start."""
    queries = "what a name in Python is"  # noqa: F841 (DuckDB would find it)
    with pytest.raises((MqlakeError, duckdb.Error)):
        run(sql, dataset(), 128 << 20).fetchall()
    assert not Path("/tmp/leak.csv").exists()


@pytest.mark.parametrize("sql", ["select * from read_text('/etc/passwd')", "attach '/tmp/leak.db'"])
def test_the_process_of_a_query_says_why_it_refuses(sql: str) -> None:
    assert ask(sql).error


def test_a_query_is_killed_when_its_time_is_over() -> None:
    endless = "select count(*) from range(1000000) a, range(1000000) b, range(1000000) c"
    assert "stopped after 3 seconds" in (ask(endless, seconds=3).error or "")


def test_a_query_gets_no_more_memory_than_allowed() -> None:
    large = "select list(range), list(range::varchar) from range(100000000)"
    error = ask(large, memory=128 << 20, seconds=100).error
    assert error is not None
    assert "memory" in error


def test_bytes_are_shown_as_text_or_as_hexadecimal_digits() -> None:
    found = ask("select 'abc'::blob, '\\xFF\\x00'::blob, 9007199254740993, 'nan'::double, null")
    assert found.rows == [["abc", "0xff00", "9007199254740993", "nan", None]]


def test_intervals_lists_and_times_are_shown_for_people() -> None:
    found = ask(
        "select interval '1 month 2 days 5 seconds', ['a'::blob, 'b'::blob],"
        " timestamptz '2026-01-02 03:04:05.006+00', interval '0 days'"
    )
    assert found.rows == [
        ["1 month 2 days 0:00:05", "[a, b]", "2026-01-02 03:04:05.006000+00:00", "0:00:00"]
    ]
    assert found.types[2] == "TIMESTAMP WITH TIME ZONE"


def test_a_parquet_file_has_the_result() -> None:
    async def run() -> bytes:
        queries = SqlQueries(SqlLimits(seconds=PATIENCE))
        sql = "select queueId, body from messages limit 5"
        return await queries.parquet("me", sql, str(store(STORE).path), None)

    found = parquet.read_table(io.BytesIO(asyncio.run(run())))
    assert found.column_names == ["queueId", "body"]
    assert found.num_rows == 5


def test_a_parquet_file_that_is_too_large_is_refused() -> None:
    async def run() -> None:
        queries = SqlQueries(SqlLimits(rows=1, seconds=PATIENCE))
        sql = "select range from range(5000)"
        with pytest.raises(MqlakeError, match="more than 1000 rows"):
            await queries.parquet("me", sql, str(store(STORE).path), None)

    asyncio.run(run())


def test_a_visitor_has_one_query_and_all_have_two() -> None:
    async def run() -> None:
        queries, path = SqlQueries(), str(store(STORE).path)
        endless = "select count(*) from range(1000000) a, range(1000000) b, range(1000000) c"
        tasks = [
            asyncio.create_task(queries.table(visitor, endless, path, None))
            for visitor in ("one", "two")
        ]
        await asyncio.sleep(0)
        with pytest.raises(MqlakeError, match="your last query"):
            await queries.table("one", "select 1", path, None)
        with pytest.raises(MqlakeError, match="other visitors"):
            await queries.table("three", "select 1", path, None)
        await until(lambda: queries.are_started)
        await queries.close()
        assert all(result.error for result in await asyncio.gather(*tasks))

    asyncio.run(run())


def test_the_log_and_its_lake_table_are_one(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.PARQUET)
    lake.take()
    lake.compact()
    lake.grow(9)
    lake.drop_segments()

    async def run() -> SqlResult:
        sql = "select count(*), count(distinct physicalOffset) from messages"
        return await SqlQueries(SqlLimits(seconds=PATIENCE)).table(
            "me", sql, str(lake.store.path), str(lake.out)
        )

    found = asyncio.run(run())
    assert found.error is None
    assert found.rows == [[len(lake.truth)] * 2]


def test_a_wide_result_is_cut_at_its_cells() -> None:
    wide = ", ".join(f"{number} as c{number}" for number in range(100))
    found = ask(f"select {wide} from range(100)", cells=1000)
    assert (len(found.rows), found.is_cut) == (10, True)
