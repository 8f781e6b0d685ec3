"""What the checks of this machine found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from mqlake.cli.text import count, printable
from mqlake.cli.views.tables import TEXT, WORD, bad, good, rows
from mqlake.doctor.finding import CheckResult, Severity

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {Severity.OK: "green", Severity.NOTE: "yellow", Severity.PROBLEM: "red"}


def view(findings: Sequence[CheckResult], problems: int) -> Iterator[RenderableType]:
    """Yield a table of all findings, and what they amount to."""
    table = rows("", [("", WORD), ("checked", WORD), ("found", TEXT), ("to mend it", TEXT)])
    for each in findings:
        state = Text(each.state.value, style=_STYLES[each.state])
        table.add_row(state, each.name, printable(each.found), printable(each.mend))
    yield table
    if problems:
        yield bad(f"{count(problems, 'problem')}: see above how to mend it")
    else:
        yield good("no problem found")
