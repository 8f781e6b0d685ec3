"""Write the tables of docs/spark-source.md: `python -m mqlake.spark.source.reference PAGE`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mqlake.spark.source.columns import COLUMNS, NULLABLE, column_type
from mqlake.spark.source.option_parsing import Option
from mqlake.spark.source.option_table import SOURCE_OPTIONS


def option_table(options: Sequence[Option] = SOURCE_OPTIONS) -> str:
    """Return the table of options."""
    rows = [
        (
            f"`{option.name}`" + "".join(f", `{alias}`" for alias in option.aliases),
            f"`{option.default}`" if option.default else "",
            "" if option.queries == "both" else option.queries,
            option.meaning,
        )
        for option in options
    ]
    return make_table(("option", "default", "queries", "meaning"), rows)


def column_table() -> str:
    """Return the table of columns."""
    rows = [
        (f"`{name}`", f"`{column_type(name)}`", "yes" if name in NULLABLE else "")
        for name in COLUMNS
    ]
    return make_table(("column", "type", "may be null"), rows)


def make_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table as Markdown has it."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def with_tables(page: str, tables: Mapping[str, str] | None = None) -> str:
    """Return a page with its tables written anew: those of this source, or others by their name."""
    tables = tables or {"options": option_table(), "columns": column_table()}
    for name, table in tables.items():
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = place.sub(lambda found, table=table: found[1] + table + found[2], page)
    return page


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_tables(path.read_text()))
