"""Show what a conversion wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlake.cli.text import count, printable, rate, size
from mqlake.cli.views import damage
from mqlake.cli.views.tables import named_values

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.jobs.convert.report import ConvertReport


def view(report: ConvertReport, seconds: float) -> Iterator[RenderableType]:
    """Yield what was written, what was left out, and what could not be read."""
    kind = "partition" if report.to == "kafka" else "queue"
    yield named_values(
        [
            ("topics", f"{report.topics:,} with {count(report.partitions, kind)}"),
            ("records", f"{report.records:,}, {size(report.bytes_written)}"),
            *_deleted(report),
            *(("left out", f"{printable(one.topic)}: {one.reason}") for one in report.left_out),
            ("took", f"{seconds:.2f} s, {rate(report.bytes_written, seconds)}"),
            ("written to", printable(report.output)),
        ]
    )
    yield from damage.view(report.damage, "Not converted")


def _deleted(report: ConvertReport) -> list[tuple[str, str]]:
    found = report.deleted_topic_messages
    return [("of a deleted topic", f"{found:,}, left out")] if found else []
