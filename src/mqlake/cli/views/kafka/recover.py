"""The result of a recovery."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mqlake.cli.text import count, printable, size
from mqlake.cli.views.tables import NUMBER, TEXT, bad, good, note, rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.kafka.repair.recover import RecoveredPartition


def view(done: Sequence[RecoveredPartition], seconds: float) -> Iterator[RenderableType]:
    """Yield a table of the partitions, and what was lost."""
    columns = [
        ("path", TEXT), ("ends before", NUMBER), ("segments", NUMBER), ("cut off", NUMBER),
        ("removed", NUMBER),
    ]  # fmt: skip
    table = rows("Recovered", columns)
    for one in done:
        table.add_row(
            printable(one.path),
            f"{one.log_end_offset:,}",
            f"{one.segments:,}",
            size(one.cut) if one.cut else "",
            count(len(one.removed), "segment") if one.removed else "",
        )
    if done:
        yield table
    cut = sum(one.cut for one in done)
    removed = sum(len(one.removed) for one in done)
    if cut or removed:
        yield bad(f"Cut off: {size(cut)}, and {count(removed, 'segment')} after a cut.")
    else:
        yield good("Nothing had to be cut off.")
    yield note(f"Took {seconds:.2f} s.")
