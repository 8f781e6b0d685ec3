"""Write the tables of docs/spark-source.md: `python -m mqlake.spark.source.reference PAGE`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from mqlake.spark.source.columns import COLUMNS, NULLABLE, column_type
from mqlake.spark.source.option_table import SOURCE_OPTIONS


def option_table() -> str:
    """Return the table of options."""
    rows = [
        (
            f"`{option.name}`" + "".join(f", `{alias}`" for alias in option.aliases),
            f"`{option.default}`" if option.default else "",
            "" if option.queries == "both" else option.queries,
            option.meaning,
        )
        for option in SOURCE_OPTIONS
    ]
    return _table(("option", "default", "queries", "meaning"), rows)


def column_table() -> str:
    """Return the table of columns."""
    rows = [
        (f"`{name}`", f"`{column_type(name)}`", "yes" if name in NULLABLE else "")
        for name in COLUMNS
    ]
    return _table(("column", "type", "may be null"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def with_tables(page: str) -> str:
    """Return a page with its two tables written anew."""
    for name, table in (("options", option_table()), ("columns", column_table())):
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = place.sub(lambda found, table=table: found[1] + table + found[2], page)
    return page


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_tables(path.read_text()))
