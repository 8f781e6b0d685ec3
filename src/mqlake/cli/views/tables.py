"""The two shapes that all views use: a table of rows, and a list of named values."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

NUMBER = "number"
"""Kind of column: right-aligned, never folded."""
WORD = "word"
"""Kind of column: left-aligned, never folded."""
TEXT = "text"
"""Kind of column: left-aligned, folded if the terminal is too narrow."""


def rows(title: str, columns: Sequence[tuple[str, str]]) -> Table:
    """Return an empty table with a title; columns are pairs of a name and a kind."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for name, kind in columns:
        table.add_column(
            name,
            justify="right" if kind == NUMBER else "left",
            no_wrap=kind != TEXT,
            overflow="fold",
            header_style="dim",
        )
    return table


def named_values(values: Sequence[tuple[str, str | Text]]) -> Table:
    """Return a table of names and values, without lines."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in values:
        table.add_row(name, value)
    return table


def good(text: str) -> Text:
    """Return a line that reports success."""
    return Text(text, style="green")


def bad(text: str) -> Text:
    """Return a line that reports damage or something missing."""
    return Text(text, style="red")


def note(text: str) -> Text:
    """Return a line that explains something."""
    return Text(text, style="dim")
