"""The columns of the source: those of Spark's Kafka source, with the same types."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.query.reading.parsing import known_columns

COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}
"""All columns, in their order, with their types in Spark's SQL. Each may be null."""


def check_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with these names, in any case.

    Raises:
        FormatError: a column does not exist, or is named twice.
    """
    return known_columns(names, list(COLUMNS))
