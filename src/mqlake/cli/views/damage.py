"""Show the damaged parts of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mqlake.cli.text import printable
from mqlake.cli.views.tables import NUMBER, TEXT, note, rows
from mqlake.formats.damage import Damage

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_ROWS = 50


def view(damage: Sequence[Damage], title: str = "Damage") -> Iterator[RenderableType]:
    """Yield a table of the damage, if there is any."""
    if not damage:
        return
    table = rows(title, [("file", TEXT), ("position", NUMBER), ("bytes", NUMBER), ("reason", TEXT)])
    for stretch in damage[:MOST_ROWS]:
        table.add_row(
            printable(stretch.file),
            f"{stretch.offset:,}",
            f"{stretch.length:,}",
            printable(stretch.reason),
        )
    yield table
    if len(damage) > MOST_ROWS:
        yield note(f"{len(damage) - MOST_ROWS:,} more; --json lists all.")
