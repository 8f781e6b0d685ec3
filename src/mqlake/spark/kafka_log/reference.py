"""Write the tables of docs/kafka-log-source.md, whose path is the argument."""

from __future__ import annotations

import sys
from pathlib import Path

from mqlake.query.kafka_log.columns import COLUMNS
from mqlake.query.kafka_log.option_table import SOURCE_OPTIONS
from mqlake.spark.options.reference import make_table, option_table, with_tables


def with_our_tables(page: str) -> str:
    """Return a page with its two tables replaced."""
    columns = make_table(("column", "type"), [(f"`{n}`", f"`{t}`") for n, t in COLUMNS.items()])
    return with_tables(page, {"options": option_table(SOURCE_OPTIONS), "columns": columns})


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_our_tables(path.read_text()))
