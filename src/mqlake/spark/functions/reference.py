"""Write the table of functions: `python -m mqlake.spark.functions.reference docs/spark-sql.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from mqlake.query.functions.store_tables import STORE_TABLES
from mqlake.spark.options.reference import make_table, with_tables


def tables() -> dict[str, str]:
    """Return the page's tables by name."""
    rows = [
        (f"`{name}`", _columns(table.columns), table.meaning)
        for name, table in STORE_TABLES.items()
    ]
    return {"functions": make_table(("function", "columns", "rows"), rows)}


def _columns(ddl: str) -> str:
    names = [column.split()[0].strip("`") for column in ddl.split(", ")]
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_tables(path.read_text(), tables()))
