"""A store directory as a table: planned as the Spark source plans it, read on threads."""

# pyright: basic
# pyarrow, Polars and DuckDB have no types, or few.

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from mqlake.errors import FormatError, StoreError
from mqlake.jobs.local import cores
from mqlake.query.reading.conditions import Selection
from mqlake.query.reading.directory import Location
from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.columns import check_columns
from mqlake.query.store.options import ReadOptions, read_options
from mqlake.query.store.plan import Plan, plan_batch
from mqlake.query.stores.places import are_many, with_one_path
from mqlake.query.stores.plan import plan_stores
from mqlake.query.stores.stores import find_stores
from mqlake.storage.shown_url import shown_url
from mqlake.table.batches import read_tasks
from mqlake.table.given_options import option_texts
from mqlake.table.where import Filter, Where, parse_filters

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from mqlake.table.dataset import LogDataset

_TASK_BYTES = 16 << 20
"""Approximate bytes of log that one task reads: enough that planning it hardly costs anything.
"""


def open(  # noqa: A001 (users write mqlake.open)
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    where: Iterable[Filter] = (),
    threads: int | None = None,
    **options: object,
) -> LogTable:
    """Open the commit log of a store directory as a table.

    Args:
        path: the store directory, its URL, or an archive; several as a list or a pattern, as one
            table with a column `brokerName`.
        columns: names of columns in docs/spark-source.md; all if None.
        where: filters as (column, operator, value), which must all hold. Operators: `=`, `!=`, `<`,
            `<=`, `>`, `>=`, `in`, `not in`. Times are aware datetimes or milliseconds.
        threads: the number of reading threads; one for each core if None.
        options: options of a batch query of the Spark source by name (docs/spark-source.md), such
            as `subscribe`, `tags`, `keys`, `startingTimestamp`.

    Raises:
        FormatError: an option, column, operator or value does not exist.
    """
    given = option_texts({"columns": columns, **options})
    if isinstance(path, str | os.PathLike):
        given["path"] = os.fspath(path)
    else:
        given["paths"] = msgspec.json.encode([os.fspath(one) for one in path]).decode()
    stores = (
        tuple(find_stores(given, streaming=False).options.values())
        if are_many(given)
        else (read_options(with_one_path(given), streaming=False),)
    )
    if not stores:
        raise StoreError(f"{shown_url(str(path))}: no store matches this pattern")
    if stores[0].table is not None:
        raise FormatError("option table: only Spark reads a lake table and the log as one table")
    return LogTable(stores, parse_filters(where), threads or cores())


class LogTable:
    """The messages of a store that options and filters choose, in log order.

    Each use reads the log again, up to its current end. `pyarrow`, Polars, DuckDB and others take
    the table itself wherever they take Arrow's PyCapsule stream.
    """

    def __init__(self, stores: tuple[ReadOptions, ...], where: Where, threads: int) -> None:
        self._stores, self._where, self._threads = stores, where, threads

    @property
    def schema(self) -> Any:
        """The `pyarrow.Schema`."""
        return arrow_schema(self.columns)

    @property
    def locations(self) -> list[Location]:
        """The addresses of the stores, and how they are reached."""
        return [store.location for store in self._stores]

    @property
    def path(self) -> str:
        """The store directory, or its URL; several are separated by commas."""
        return ",".join(store.path for store in self._stores)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._stores[0].columns

    def select(self, *columns: str) -> LogTable:
        """Return the table with these columns only.

        Raises:
            FormatError: a column does not exist, or is named twice.
        """
        names = check_columns(columns)
        chosen = (msgspec.structs.replace(store, columns=names) for store in self._stores)
        return LogTable(tuple(chosen), self._where, self._threads)

    def explain(self) -> str:
        """Plan a read; return one line for each store that says how much of the log is read.

        Raises:
            StoreError: as for `reader`.
        """
        return "\n".join(plan.explain() for plan in self._plans(self._where.pushed))

    def reader(self) -> Any:
        """Return a `pyarrow.RecordBatchReader` of the messages.

        Raises:
            StoreError: there is no store, or a topic is missing; while reading: damage.
        """
        return self.narrowed(self.columns, self._where)

    def narrowed(self, columns: Sequence[str], where: Where) -> Any:
        """Return a `pyarrow.RecordBatchReader` of some columns of the rows that satisfy filters.

        Args:
            where: filters that replace the table's own.
        """
        tasks = [task for plan in self._plans(where.pushed) for task in plan.tasks]
        needed = [*columns, *sorted(where.columns.difference(columns))]
        batches = read_tasks(tasks, arrow_schema(needed), where.expression, self._threads)
        schema = arrow_schema(columns)
        if len(needed) > len(columns):
            batches = (batch.select(list(columns)) for batch in batches)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _plans(self, pushed: Selection) -> list[Plan]:
        first, *others = self._stores
        if others:
            return plan_stores(self._stores, pushed, _TASK_BYTES)
        return [plan_batch(first, pushed, _TASK_BYTES)]

    @property
    def filters(self) -> Where:
        """The filters of the table."""
        return self._where

    def __iter__(self) -> Iterator[Any]:
        """Yield the messages as `pyarrow.RecordBatch`es."""
        return iter(self.reader())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the messages as a PyCapsule (Arrow's C stream interface)."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """Return all messages as a `pyarrow.Table`."""
        return self.reader().read_all()

    def to_polars(self) -> pl.DataFrame:
        """Return all messages as a Polars frame."""
        import polars as pl

        return pl.DataFrame(self)

    def scan_polars(self) -> pl.LazyFrame:
        """Return a lazy Polars frame, which reads only the columns and rows that a query needs."""
        import polars as pl

        return pl.scan_pyarrow_dataset(self.dataset())

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> Any:
        """Return a DuckDB relation, which reads only the columns and rows that a query needs."""
        import duckdb

        if connection is None:
            return duckdb.from_arrow(self.dataset())
        return connection.from_arrow(self.dataset())

    def dataset(self) -> LogDataset:
        """Return a `pyarrow.dataset.Dataset`, into which engines push columns and filters."""
        from mqlake.table.dataset import LogDataset

        return LogDataset(self)
