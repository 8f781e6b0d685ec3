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
BEGIN, END = "<!-- table -->\n", "<!-- end of the table -->\n"


def table() -> str:
    """Return the table of the page."""
    head = ["event", *(piece.name for piece in PIECES)]
    rows = [[event, *(piece.outcomes.get(event, "—") for piece in PIECES)] for event in EVENTS]
    return "".join(map(_line, (head, ["---"] * len(head), *rows)))


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def page() -> str:
    """Return the page with the current table."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
