from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from pathlib import Path

from pyarrow import parquet

from mqlake.testing.running_broker import RunningBroker
from tests.console.site import Site, site, words
from tests.golden import store

Work = Callable[[Site], Awaitable[None]]


def visit(
    running: RunningBroker, work: Callable[[Site], Awaitable[None]], **options: object
) -> None:
    async def run() -> None:
        stores = (store("rmq5-clean").path,)
        async with site(running.name_server, stores=stores, **options) as visitor:
            await work(visitor)

    asyncio.run(run())


def test_runs_the_example(running: RunningBroker) -> None:
    async def work(visitor: Site) -> None:
        form = await visitor.get("/sql")
        assert "SELECT topic" in words(form)
        sql = "select topic, count(*) from messages group by all order by all"
        result = await visitor.post("/sql/run", {"sql": sql})
        assert "TopicA" in words(result)
        assert "Link to this statement" in words(result)

    visit(running, work)


def test_draws_numbers_over_a_time(running: RunningBroker) -> None:
    async def work(visitor: Site) -> None:
        sql = (
            "select date_trunc('second', storeTimestamp) as at, count(*) as messages"
            " from messages group by all"
        )
        assert 'id="chart"' in (await visitor.post("/sql/run", {"sql": sql})).text

    visit(running, work)


def test_times_are_shown_in_the_zone_of_the_viewer(running: RunningBroker) -> None:
    async def work(visitor: Site) -> None:
        sql = "select timestamptz '2026-01-02 03:04:05.006+00' as at"
        text = (await visitor.post("/sql/run", {"sql": sql})).text
        assert '<time datetime="2026-01-02T03:04:05.006000+00:00" data-exact>' in text

    visit(running, work)


def test_downloads_parquet(running: RunningBroker) -> None:
    async def work(visitor: Site) -> None:
        fields = {"sql": "select topic from messages limit 3"}
        found = await visitor.post("/sql/parquet", fields)
        assert found.headers["content-disposition"] == 'attachment; filename="result.parquet"'
        assert parquet.read_table(io.BytesIO(found.content)).num_rows == 3
        failed = await visitor.post("/sql/parquet", {"sql": "selec"})
        assert "Parser Error" in words(failed)

    visit(running, work)


def test_a_read_only_console_runs_queries(running: RunningBroker) -> None:
    async def work(visitor: Site) -> None:
        found = await visitor.post("/sql/run", {"sql": "select 41 + 1"})
        assert "42" in words(found)

    visit(running, work, read_only=True)


def test_only_the_tables_of_the_console_are_read(running: RunningBroker, tmp_path: Path) -> None:
    async def work(visitor: Site) -> None:
        form = {"sql": "select 1", "table": str(tmp_path)}
        assert (await visitor.post("/sql/run", form)).status_code == 404

    visit(running, work)
