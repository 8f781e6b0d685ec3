"""The result of a verification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlake.cli.text import count, printable, rate, size
from mqlake.cli.views import damage
from mqlake.cli.views.tables import bad, good, named_values

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.kafka.verify.partitions import PartitionsReport


def view(report: PartitionsReport, seconds: float) -> Iterator[RenderableType]:
    """Yield what was read and compared, then the damage and the verdict."""
    segments = [segment for partition in report.partitions for segment in partition.segments]
    entries = sum(segment.index_entries + segment.time_index_entries for segment in segments)
    partitions = count(len(report.partitions), "partition")
    yield named_values(
        [
            ("path", printable(report.path)),
            ("read", f"{size(report.size)} in {count(len(segments), 'segment')} of {partitions}"),
            ("batches", f"{report.batches:,} with {count(report.records, 'record')}"),
            ("indexes", count(entries, "entry", "entries")),
            ("took", f"{seconds:.2f} s, {rate(report.size, seconds)}"),
        ]
    )
    yield from damage.view([one for partition in report.partitions for one in partition.damage])
    yield good("No damage.") if report.ok else bad("The log is damaged.")
