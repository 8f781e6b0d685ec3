"""The table of docs/what-ends.md that compares mqlake's broker with RocketMQ's."""

from __future__ import annotations

from tests.broker.endings.table import PAGE, line, with_table
from tests.peer.endings.record import differences, reasons
from tests.peer.endings.sides import JAVA, MQLAKE

_HEAD = ("event", "state", MQLAKE, JAVA, f"why {JAVA} does this")


def table() -> str:
    """Return the table: a row for each event and reason."""
    why = reasons()
    rows: dict[tuple[str, ...], list[str]] = {}
    for cell, (ours, theirs) in differences().items():
        rows.setdefault((cell.event, ours, theirs, why.get(cell, "?")), []).append(cell.piece)
    lines = [
        line((event, ", ".join(pieces).replace(", in memory", " in memory"), ours, theirs, reason))
        for (event, ours, theirs, reason), pieces in rows.items()
    ]
    return "".join((line(_HEAD), line(["---"] * len(_HEAD)), *lines))


def page() -> str:
    """Return the page with the current table."""
    return with_table(PAGE.read_text("utf-8"), "beside RocketMQ", table())


def write() -> None:
    """Write the current table into the page."""
    PAGE.write_text(page(), "utf-8")
