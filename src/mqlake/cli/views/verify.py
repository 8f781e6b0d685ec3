"""The result of a verification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlake.cli.text import count, printable, rate, size
from mqlake.cli.views import damage
from mqlake.cli.views.tables import bad, good, named_values, note

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.jobs.verify.findings import EntryFindings
    from mqlake.jobs.verify.job import VerifyReport


def view(report: VerifyReport, seconds: float) -> Iterator[RenderableType]:
    """Yield what was read and compared, then the damage and the verdict."""
    yield named_values(
        [
            ("store", printable(report.store)),
            (
                "read",
                f"{size(report.bytes_scanned)} of commit log, up to offset {report.log_end:,}",
            ),
            ("records", _records(report)),
            *_deleted(report),
            ("queues", f"{report.queues:,}: {_entries(report.queue_entries)}"),
            ("index files", f"{report.index_files:,}: {_entries(report.index_entries)}"),
            *_light(report),
            ("dialect", f"RocketMQ {report.dialect.value}"),
            ("took", f"{seconds:.2f} s, {rate(report.bytes_scanned, seconds)}"),
        ]
    )
    yield from damage.view(report.damage)
    for line in report.notes:
        yield note(printable(line))
    yield good("No damage.") if report.ok else bad("The store is damaged.")


def _records(report: VerifyReport) -> str:
    damaged = report.damaged_bodies
    bodies = f", {damaged:,} with a damaged body" if damaged else ""
    torn = f", {report.torn_records:,} torn" if report.torn_records else ""
    return f"{report.records:,}{bodies}{torn}"


def _deleted(report: VerifyReport) -> list[tuple[str, str]]:
    found = report.deleted_topic_records
    return [("of a deleted topic", f"{found:,}")] if found else []


def _light(report: VerifyReport) -> list[tuple[str, str]]:
    files, entries = report.light_files, count(report.light_entries, "entry", "entries")
    return [("files of light queues", f"{files:,}: {entries} compared")] if files else []


def _entries(found: EntryFindings) -> str:
    faults = [
        f"{finding.count:,} {name}"
        for name, finding in (
            ("missing", found.missing),
            ("wrong", found.wrong),
            ("without a record", found.dangling),
        )
        if finding.count
    ]
    return ", ".join([count(found.good, "right entry", "right entries"), *faults])
