"""What becomes of each piece of a broker's state in each event that could end it.

`python -m tests.broker.endings.table` writes this table to docs/what-ends.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.broker.endings.events import EVENTS
from tests.broker.endings.pieces import Piece
from tests.broker.endings.pop_pieces import POP_PIECES
from tests.broker.endings.waiting_pieces import WAITING_PIECES

PIECES: tuple[Piece, ...] = (*POP_PIECES, *WAITING_PIECES)

PAGE = Path(__file__).parents[3] / "docs" / "what-ends.md"


def table() -> str:
    """Return the table of the page."""
    head = ["event", *(piece.name for piece in PIECES)]
    rows = [[event, *(piece.outcomes.get(event, "—") for piece in PIECES)] for event in EVENTS]
    return "".join(map(line, (head, ["---"] * len(head), *rows)))


def line(cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return "| " + " | ".join(cells) + " |\n"


def with_table(text: str, name: str, table: str) -> str:
    """Return a page with a table in the place that has its name.

    Raises:
        ValueError: the page has no such place.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"no place for {name}")
    return f"{before}{begin}{table}{end}{after}"


def page() -> str:
    """Return the page with the current table."""
    return with_table(PAGE.read_text("utf-8"), "the table", table())


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
