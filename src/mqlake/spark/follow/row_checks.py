"""Expressions that each row of a table must satisfy, evaluated by Spark.

The expressions are Spark's SQL, and name the table's columns. A row for which one is null is
refused, as by Delta Lake.
"""

# pyright: basic
# Reason: PySpark carries few types.

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROW = "mqlake_row"


class Check(NamedTuple):
    """A rule of a table.

    Attributes:
        name: what it is, for people.
        sql: is true for rows that the table takes.
    """

    name: str
    sql: str


@dataclass(frozen=True)
class RowChecks:
    """The rules of a table for its rows.

    Attributes:
        schema: of the table, as JSON of Spark and of Delta Lake.
        written: columns that rows have; all others are null.
        place: the table, for messages.
    """

    checks: tuple[Check, ...]
    schema: str
    written: frozenset[str]
    place: str

    @property
    def reason(self) -> str:
        """Why rows are refused."""
        names = "; ".join(f"{check.name} ({check.sql})" for check in self.checks)
        return f"{self.place}: the row violates one of: {names}"

    def split(self, rows: DataFrame) -> tuple[DataFrame, DataFrame]:
        """Return the rows that the table takes, and those that it refuses."""
        from pyspark.sql import functions as sql

        seen = rows.select(
            sql.struct(*[sql.col(f"`{name}`") for name in rows.columns]).alias(_ROW),
            *self._columns(rows),
        )
        good: Column = reduce(
            lambda one, other: one & other,
            [sql.coalesce(sql.expr(check.sql), sql.lit(False)) for check in self.checks],
        )
        taken, refused = seen.where(good), seen.where(~good)
        return taken.select(f"{_ROW}.*"), refused.select(f"{_ROW}.*")

    def _columns(self, rows: DataFrame) -> Sequence[Column]:
        """Return the table's columns, by the names of its schema."""
        from pyspark.sql import functions as sql
        from pyspark.sql.types import StructType

        made: list[Any] = []
        for field in StructType.fromJson(json.loads(self.schema)):
            if field.name in self.written and field.name in rows.columns:
                value = sql.col(f"`{field.name}`")
            elif field.name in self.written and field.name == "day":
                value = sql.to_date(sql.col("storeTimestamp"))
            else:
                value = sql.lit(None)
            made.append(value.cast(field.dataType).alias(field.name))
        return made
