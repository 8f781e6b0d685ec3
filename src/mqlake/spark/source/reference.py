"""Write the tables of docs/spark-source.md: `python -m mqlake.spark.source.reference PAGE`."""

from __future__ import annotations

import sys
from pathlib import Path

from mqlake.query.store.columns import COLUMNS, NULLABLE, column_type
from mqlake.query.store.option_table import SOURCE_OPTIONS
from mqlake.spark.options.reference import make_table, option_table, with_tables


def tables() -> dict[str, str]:
    """Return the tables of the page, by their names."""
    return {"options": option_table(SOURCE_OPTIONS), "columns": column_table()}


def column_table() -> str:
    """Return the table of columns."""
    rows = [
        (f"`{name}`", f"`{column_type(name)}`", "yes" if name in NULLABLE else "")
        for name in COLUMNS
    ]
    return make_table(("column", "type", "may be null"), rows)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_tables(path.read_text(), tables()))
