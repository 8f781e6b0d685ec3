"""Expressions that each row of a table must satisfy; the adapter of Spark evaluates them.

The expressions are Spark's SQL, and name the table's columns. A row for which one is null is
refused, as by Delta Lake.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


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
