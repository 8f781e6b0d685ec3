"""Write tables of options and columns into pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from mqlake.query.reading.parsing import Option


def option_table(options: Sequence[Option]) -> str:
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


def make_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with its tables, by their names, replaced."""
    for name, table in tables.items():
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = place.sub(lambda found, table=table: found[1] + table + found[2], page)
    return page
