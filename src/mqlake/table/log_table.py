"""A store directory as a table, for Arrow, Polars and DuckDB."""

# pyright: basic
# pyarrow, Polars and DuckDB have no types, or few.

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mqlake.errors import FormatError
from mqlake.exports import import_of_extra
from mqlake.jobs.local import cores
from mqlake.query.store.options import read_options
from mqlake.query.stores.places import are_many, with_one_path
from mqlake.query.stores.stores import find_stores
from mqlake.table.given_options import option_texts
from mqlake.table.log_rows import LogRows
from mqlake.table.where import Filter, parse_filters

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from mqlake.table.dataset import LogDataset


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
            as `subscribe`, `tags`, `keys`, `startingTimestamp`. With `table`, a lake table and the
            newer messages of the store are read as one (docs/union-read.md), in no order.

    Raises:
        FormatError: an option, column, operator or value does not exist, or is not allowed.
    """
    if threads is not None and threads < 0:
        raise FormatError(f"threads={threads}: give at least 1, or None for one for each core")
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
    if are_many(given) and stores[0].table is not None:
        raise FormatError("option table: only Spark reads the logs of several stores and a table")
    return LogTable(stores, parse_filters(where), threads or cores())


class LogTable(LogRows):
    """The messages of a store that options and filters choose, in log order.

    Each use reads the log again, up to its current end. `pyarrow`, Polars, DuckDB and others take
    the table itself wherever they take Arrow's PyCapsule stream.
    """

    def to_arrow(self) -> Any:
        """Return all messages as a `pyarrow.Table`."""
        return self.reader().read_all()

    def to_polars(self) -> pl.DataFrame:
        """Return all messages as a Polars frame."""
        return import_of_extra("polars").DataFrame(self)

    def scan_polars(self) -> pl.LazyFrame:
        """Return a lazy Polars frame, which reads only the columns and rows that a query needs."""
        return import_of_extra("polars").scan_pyarrow_dataset(self.dataset())

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> Any:
        """Return a DuckDB relation, which reads only the columns and rows that a query needs."""
        duckdb = import_of_extra("duckdb")
        if connection is None:
            return duckdb.from_arrow(self.dataset())
        return connection.from_arrow(self.dataset())

    def dataset(self) -> LogDataset:
        """Return a `pyarrow.dataset.Dataset`, into which engines push columns and filters."""
        from mqlake.table.dataset import LogDataset

        return LogDataset(self)
