"""The section of docs/grpc.md that compares mqlake's service with RocketMQ's proxy."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from tests.broker.endings.table import line, with_table
from tests.peer.grpc.record import Cell, Found, Pair, differences, load, reasons
from tests.peer.grpc.run import SCENARIOS
from tests.peer.grpc.sides import JAVA, MQLAKE

PAGE = Path(__file__).parents[3] / "docs" / "grpc.md"
_LANGUAGES = {"java": "Java", "node": "Node.js", "python": "Python"}
_LONGEST = 160


def table() -> str:
    """Return the table of scenarios and that of differences."""
    found = load()
    different = differences(found)
    lines = [line(("scenario", *_LANGUAGES.values())), line(["---"] * (1 + len(_LANGUAGES)))]
    for name, scenario in SCENARIOS.items():
        summary = (scenario.run.__doc__ or name).strip().rstrip(".")
        cells = [_state(Cell(name, "", language), found, different) for language in _LANGUAGES]
        lines.append(line((f"{name}: {summary[0].lower()}{summary[1:]}", *cells)))
    return "".join(lines) + "\n" + _differences(different)


def _state(cell: Cell, found: Found, different: dict[Cell, Pair]) -> str:
    if any(cell.language not in found[side].get(cell.scenario, {}) for side in (MQLAKE, JAVA)):
        return "-"
    count = sum(each[::2] == cell[::2] for each in different)
    return f"{count} different" if count else "same"


def _differences(different: dict[Cell, Pair]) -> str:
    if not different:
        return "No difference.\n"
    why = reasons()
    rows: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for cell, pair in different.items():
        reason = why.get((cell.scenario, cell.what), "?")
        row = (cell.scenario, cell.what, _short(pair.ours), _short(pair.theirs), reason)
        rows[row].append(_LANGUAGES[cell.language])
    head = ("scenario", "what", "clients", MQLAKE, JAVA, "why")
    lines = [line(head), line(["---"] * len(head))]
    for (scenario, what, ours, theirs, reason), languages in sorted(rows.items()):
        lines.append(line((scenario, what, ", ".join(languages), ours, theirs, reason)))
    return "".join(lines)


def _short(text: str) -> str:
    text = re.sub(r"[\n|]", " ", text)
    return f"`{text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}`"


def page() -> str:
    """Return the page with the current tables."""
    return with_table(PAGE.read_text("utf-8"), "beside RocketMQ's proxy", table())


def write() -> None:
    """Write the current tables into the page."""
    PAGE.write_text(page(), "utf-8")
