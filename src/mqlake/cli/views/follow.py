"""Show what `mqlake follow` has done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlake.cli.text import count, printable, size
from mqlake.cli.views.tables import named_values

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.lake.follow.accounting import CheckReport
    from mqlake.lake.follow.letter_replay import ReplayReport
    from mqlake.spark.follow.derived_files import DispatchReport
    from mqlake.spark.follow.job import FollowReport


def view(report: FollowReport | DispatchReport, seconds: float) -> Iterator[RenderableType]:
    """Yield what was written to the table or dispatched, and where the position is kept."""
    from mqlake.spark.follow.job import FollowReport

    batches = count(report.batches, "micro-batch", "micro-batches")
    if isinstance(report, FollowReport):
        rows = [
            ("messages", f"{report.messages:,} in {batches}"),
            (
                "files",
                f"{report.files:,}, {size(report.bytes_written)}; {report.files_merged:,} merged",
            ),
            *_letters(report.dead_letters),
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


def _letters(found: int) -> list[tuple[str, str]]:
    return [("dead letters", f"{found:,}")] if found else []


def check_view(report: CheckReport, seconds: float) -> Iterator[RenderableType]:
    """Yield whether a table has the messages of the log."""
    kept = report.rows + report.refused
    rows = [
        ("log", f"{report.records.count:,} records, checksum {report.records.checksum:016x}"),
        ("table", f"{kept.count:,} with dead letters, checksum {kept.checksum:016x}"),
        ("of these refused", f"{report.refused.count:,} among the dead letters"),
        (
            "damage",
            f"{size(report.damaged_bytes)} in the log, {size(report.damaged_bytes_noted)} noted",
        ),
        *([("older than the log", f"{report.older:,} rows")] if report.older else []),
        ("result", "every message is there once" if report.ok else "they differ"),
    ]
    yield named_values([*rows, ("took", f"{seconds:.2f} s")])


def replay_view(report: ReplayReport, seconds: float) -> Iterator[RenderableType]:
    """Yield what a replay moved into the table."""
    rows = [("messages", f"{report.messages:,}"), ("dead letters left", f"{report.left:,}")]
    yield named_values([*rows, ("took", f"{seconds:.2f} s")])
