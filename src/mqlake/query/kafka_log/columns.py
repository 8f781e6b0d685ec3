"""The columns of the source: those of Spark's Kafka source, with the same types."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.errors import FormatError
from mqlake.query.reading.parsing import nearest

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
    known = {name.lower(): name for name in COLUMNS}
    for number, name in enumerate(names):
        if name.lower() not in known:
            near = nearest(name, list(COLUMNS))
            raise FormatError(f"there is no column {name[:200]!r}; the nearest is {near}")
        if name.lower() in (other.lower() for other in names[:number]):
            raise FormatError(f"column {name} is named twice")
    return tuple(known[name.lower()] for name in names)
