"""Show what an export wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlake.cli.text import count, printable, rate, size
from mqlake.cli.views import damage
from mqlake.cli.views.tables import named_values

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.jobs.export.job import ExportReport


def view(report: ExportReport, seconds: float) -> Iterator[RenderableType]:
    """Yield what was read and written, and what could not be read."""
    yield named_values(
        [
            (
                "read",
                f"{size(report.bytes_scanned)} of commit log, up to offset {report.log_end:,}",
            ),
            ("records read", f"{report.records:,}"),
            ("messages", f"{report.messages:,}"),
            *_deleted(report),
            *_stored(report),
            ("files", f"{count(report.files, 'Parquet file')}, {size(report.bytes_written)}"),
            ("took", f"{seconds:.2f} s, {rate(report.bytes_scanned, seconds)}"),
            ("written to", printable(report.output)),
        ]
    )
    yield from damage.view(report.damage, "Not exported")


def _deleted(report: ExportReport) -> list[tuple[str, str]]:
    found = report.deleted_topic_messages
    return [("of a deleted topic", f"{found:,}, left out")] if found else []


def _stored(report: ExportReport) -> list[tuple[str, str]]:
    found = report.stored_bodies
    return [("not decompressed", f"{found:,} bodies, written as stored")] if found else []
