"""Show what a rebuild wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlake.cli.text import count, printable, rate, size
from mqlake.cli.views import damage
from mqlake.cli.views.tables import named_values

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.jobs.rebuild.report import RebuildReport


def view(report: RebuildReport, seconds: float) -> Iterator[RenderableType]:
    """Yield what was read and written, and what was wrong with the log."""
    settings = report.settings
    entries = count(report.queue_entries, "entry", "entries")
    indexed = count(report.index_entries, "entry", "entries")
    values = [
        ("read", f"{size(report.bytes_scanned)} of commit log, up to offset {report.log_end:,}"),
        ("records", f"{report.records:,}"),
        (
            "queues",
            f"{report.queues:,} with {entries}, in files of {settings.queue_file_size:,} bytes",
        ),
        ("index", f"{count(report.index_files, 'file')} with {indexed}"),
        ("dialect", f"RocketMQ {settings.dialect.value}"),
        ("took", f"{seconds:.2f} s, {rate(report.bytes_scanned, seconds)}"),
        ("built in", printable(report.output)),
    ]
    if report.queues_kept:
        values.append(("kept", f"{count(report.queues_kept, 'queue')} without a record in the log"))
    if report.records_beyond:
        beyond = count(report.records_beyond, "good record")
        values.append(("left out", f"{beyond} past the end of the log, as in RocketMQ"))
    if report.deleted_topic_records:
        dead = count(report.deleted_topic_records, "record")
        values.append(("of a deleted topic", f"{dead}, which have no queue entries"))
    if report.recreated_topic_records:
        dead = count(report.recreated_topic_records, "record")
        values.append(("of these", f"{dead} of topics that exist again"))
    if report.refused:
        refused = count(report.refused, "record")
        values.append(("refused", f"{refused} whose queue offset is taken or impossible"))
    yield named_values(values)
    yield from damage.view(report.damage)
