"""Show what an archive contains, and what was copied to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlake.cli.text import count, local_time, printable, rate, size
from mqlake.cli.views import damage
from mqlake.cli.views.tables import bad, good, named_values

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.jobs.archive.check import ArchiveCheckReport
    from mqlake.jobs.archive.job import ArchiveReport


def view(
    report: ArchiveReport, checked: ArchiveCheckReport | None, seconds: float
) -> Iterator[RenderableType]:
    """Yield what the archive contains, what is missing, and what a check found."""
    copied = f"{count(report.new_segments, 'segment')}, {count(report.new_files, 'other file')}"
    offsets = f"offsets {report.min_offset:,} to {report.max_offset:,}"
    values = [
        ("archive", printable(report.archive)),
        ("copied", f"{copied}, {size(report.bytes_copied)}"),
        ("log", f"{count(report.segments, 'segment')}, {offsets}"),
        ("records", f"{report.records:,}"),
        ("other files", f"{report.files:,}"),
        ("size", size(report.bytes_stored)),
        ("took", f"{seconds:.2f} s, {rate(report.bytes_copied, seconds)}"),
    ]
    if report.records:
        first, last = report.min_store_timestamp, report.max_store_timestamp
        values.insert(4, ("stored", f"{local_time(first)} to {local_time(last)}"))
    yield named_values(values)
    if report.damaged_bytes:
        yield bad(f"{size(report.damaged_bytes)} of the log are damaged.")
    for gap in report.missing:
        yield bad(f"Removed before it was archived: offsets {gap.start:,} to {gap.end:,}.")
    if checked is not None:
        yield from damage.view(checked.damage)
        if not checked.damage:
            yield good(f"{checked.objects:,} objects match the manifest.")
