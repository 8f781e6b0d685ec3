"""Show where records are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mqlake.cli.text import printable, size, time_and_milliseconds
from mqlake.cli.views.tables import NUMBER, TEXT, named_values, note, rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.kafka.lookup import LookupResult


def view(found: Sequence[LookupResult]) -> Iterator[RenderableType]:
    """Yield all about the only record, or a table of several."""
    if not found:
        yield note("Nothing matched.")
    elif len(found) == 1:
        yield _one(found[0])
    else:
        yield _several(found)


def _one(one: LookupResult) -> RenderableType:
    return named_values(
        [
            ("offset", f"{one.offset:,}"),
            ("time", _time(one)),
            ("leader epoch", "-" if one.leader_epoch < 0 else str(one.leader_epoch)),
            ("file", printable(one.file)),
            ("batch at", f"{one.position:,}, {size(one.size)}"),
            ("its offsets", f"{one.base_offset:,} to {one.last_offset:,}"),
        ]
    )


def _several(found: Sequence[LookupResult]) -> RenderableType:
    columns = [
        ("partition", TEXT), ("offset", NUMBER), ("time", TEXT), ("file", TEXT),
        ("batch at", NUMBER), ("bytes", NUMBER),
    ]  # fmt: skip
    table = rows("Found", columns)
    for one in found:
        table.add_row(
            printable(f"{one.topic}-{one.partition}"),
            f"{one.offset:,}",
            _time(one),
            printable(one.file.rpartition("/")[2]),
            f"{one.position:,}",
            f"{one.size:,}",
        )
    return table


def _time(one: LookupResult) -> str:
    return "-" if one.timestamp < 0 else time_and_milliseconds(one.timestamp)
