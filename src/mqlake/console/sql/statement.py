"""A query, its limits and its result, as the console and the process of the query exchange them."""

from __future__ import annotations

from typing import Any

import msgspec

LONGEST = 20_000
"""Characters of a statement."""


class SqlLimits(msgspec.Struct, frozen=True):
    """What one query may use.

    Attributes:
        seconds: after which its process is killed.
        rows: of the result; it is cut off after them.
        cells: of the result, as rows times columns; a table is cut off after them.
        memory: bytes that DuckDB may use; its process may have 1 GiB more.
        output: bytes of the result; a table is cut off after them, a Parquet file is refused.
    """

    seconds: float = 20.0
    rows: int = 1000
    cells: int = 20_000
    memory: int = 512 << 20
    output: int = 8 << 20

    def for_parquet(self) -> SqlLimits:
        """Return the limits of a query whose result is a Parquet file."""
        return msgspec.structs.replace(self, rows=1000 * self.rows, output=8 * self.output)


class SqlStatement(msgspec.Struct, frozen=True):
    """What the process of a query is given.

    Attributes:
        store: the store directory that the view `messages` reads.
        table: a lake table of that store; the view then has the messages of both, each once.
        is_parquet: whether the result is a Parquet file.
    """

    sql: str
    store: str
    table: str | None
    is_parquet: bool
    limits: SqlLimits


class SqlResult(msgspec.Struct, frozen=True):
    """The result of a query.

    Attributes:
        columns: the names of the columns; `types` has their types.
        rows: numbers are numbers, everything else is text; None for null.
        is_cut: whether there are more rows.
        seconds: that DuckDB took.
        error: why there is no result; None if there is.
    """

    columns: list[str] = []
    types: list[str] = []
    rows: list[list[Any]] = []
    is_cut: bool = False
    seconds: float = 0.0
    error: str | None = None
