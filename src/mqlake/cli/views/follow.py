"""What following a store has done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlake.cli.text import count, printable, size
from mqlake.cli.views.tables import named_values

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.spark.follow.derived_files import DispatchReport
    from mqlake.spark.follow.job import FollowReport


def view(report: FollowReport | DispatchReport, seconds: float) -> Iterator[RenderableType]:
    """Yield what came into the table, or was dispatched, and where how far it is is kept."""
    from mqlake.spark.follow.job import FollowReport

    batches = count(report.batches, "micro-batch", "micro-batches")
    if isinstance(report, FollowReport):
        rows = [
            ("messages", f"{report.messages:,} in {batches}"),
            (
                "files",
                f"{report.files:,}, {size(report.bytes_written)}; {report.files_merged:,} merged",
            ),
            ("written to", printable(report.output)),
        ]
    else:
        start = "rebuilt what was missing, then " if report.is_rebuilt else ""
        rows = [
            ("dispatched", f"{start}{report.records:,} records in {batches}"),
            ("up to", f"physical offset {report.log_end:,}"),
        ]
    yield named_values(
        [*rows, ("checkpoint", printable(report.checkpoint)), ("took", f"{seconds:.2f} s")]
    )
