"""The page of SQL: a query over a store's log and its lake table, as a table, a chart or a file."""

from __future__ import annotations

import asyncio
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mqlake.console.access.changes import needs, reading
from mqlake.console.access.forms import PostedForm
from mqlake.console.access.roles import ConsoleRole
from mqlake.console.page import page, url
from mqlake.console.page_error import PageError
from mqlake.console.pages.store_files import store_of
from mqlake.console.sql.chart import chart_of
from mqlake.console.sql.statement import LONGEST, SqlResult
from mqlake.console.state import console_of, session_of
from mqlake.errors import MqlakeError
from mqlake.storage.shown_url import shown_url

EXAMPLE: Final = """\
SELECT topic, count(*) AS messages, sum(size) AS bytes, max(storeTimestamp) AS last
FROM messages
GROUP BY topic ORDER BY messages DESC LIMIT 20"""
_PARQUET: Final = "application/vnd.apache.parquet"


def routes() -> list[BaseRoute]:
    """Return the routes of the section."""
    admin = ConsoleRole.ADMIN
    return [
        Route("/sql", needs(admin, _empty), methods=["GET"]),
        reading("/sql/run", _run, admin),
        reading("/sql/parquet", _download, admin),
    ]


def _show(request: Request, sql: str, store: Path, table: str | None, **values: Any) -> Response:
    console = console_of(request)
    return page(
        request,
        "sql/sql.html",
        title="SQL",
        sql=sql,
        store=str(store),
        stores=[str(each) for each in console.options.stores],
        table="" if table is None else shown_url(table),
        tables=[shown_url(each) for each in console.options.tables],
        missing_packages=_missing_packages(),
        limits=console.queries.limits,
        link=url("/sql", sql=sql, store=store, table=None if table is None else shown_url(table)),
        **values,
    )


def _table_of(request: Request, given: str) -> str | None:
    if not given:
        return None
    for table in console_of(request).options.tables:
        # URLs may contain credentials, which no page shows.
        if given == shown_url(table):
            return table
    raise PageError("This console does not show that lake table", status=404)


@cache
def _missing_packages() -> str:
    """Return the packages of SQL that are not installed."""
    names = ("duckdb", "pyarrow", "pytz")
    return ", ".join(name for name in names if importlib.util.find_spec(name) is None)


def _visitor(request: Request) -> str:
    session = session_of(request)
    return f"user {session.user}" if session.user else session.token


async def _empty(request: Request) -> Response:
    given = request.query_params
    store = store_of(request, given.get("store", ""))
    table = _table_of(request, given.get("table", ""))
    sql = given.get("sql", EXAMPLE)[:LONGEST]
    return _show(request, sql, store, table, result=None, chart=None)


def _asked(request: Request, form: PostedForm) -> tuple[str, Path, str | None]:
    """Return the statement, the store and the lake table of a query."""
    sql = form.required("sql", "The statement")
    return sql, store_of(request, form.text("store")), _table_of(request, form.text("table"))


async def _run(request: Request, form: PostedForm) -> Response:
    sql, store, table = _asked(request, form)
    queries, visitor = console_of(request).queries, _visitor(request)
    try:
        result = await queries.table(visitor, sql, str(store), table)
    except MqlakeError as error:
        result = SqlResult(error=str(error))
    chart = chart_of(result)
    text = None if chart is None else msgspec.json.encode(chart).decode()
    # A large result takes longer than the event loop may be held.
    return await asyncio.to_thread(_show, request, sql, store, table, result=result, chart=text)


async def _download(request: Request, form: PostedForm) -> Response:
    sql, store, table = _asked(request, form)
    queries, visitor = console_of(request).queries, _visitor(request)
    try:
        data = await queries.parquet(visitor, sql, str(store), table)
    except MqlakeError as error:
        result = SqlResult(error=str(error))
        return _show(request, sql, store, table, result=result, chart=None)
    headers = {"content-disposition": 'attachment; filename="result.parquet"'}
    return Response(data, media_type=_PARQUET, headers=headers)
