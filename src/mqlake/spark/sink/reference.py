"""Write the tables of docs/spark-sink.md: `python -m mqlake.spark.sink.reference PAGE`."""

from __future__ import annotations

import sys
from pathlib import Path

from mqlake.spark.options.reference import make_table, option_table, with_tables
from mqlake.spark.sink.columns import TYPES
from mqlake.spark.sink.option_table import SINK_OPTIONS


def tables() -> dict[str, str]:
    """Return the tables of the page, by their names."""
    rows = [
        (f"`{name}`", " or ".join(f"`{one}`" for one in types)) for name, types in TYPES.items()
    ]
    return {"options": option_table(SINK_OPTIONS), "columns": make_table(("column", "type"), rows)}


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_tables(path.read_text(), tables()))
