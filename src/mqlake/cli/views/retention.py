"""A store's retention: what would go, why, and who has not read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from mqlake.cli.text import count, local_time, printable, shortened, size
from mqlake.cli.views.tables import NUMBER, TEXT, bad, good, named_values, note, rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.store.retention.report import RetentionReport, UnreadReport

NAME_LENGTH = 48
REASONS = {
    "expired": "older than fileReservedTime",
    "disk": "the disk is too full",
    "bytes": "the log is larger than maxCommitLogBytes",
    "log": "its part of the log goes",
}


def view(report: RetentionReport, batch: int) -> Iterator[RenderableType]:
    """Yield the summary, then the files that go, and what consumers lose.

    Args:
        batch: files of the log that go in one go.
    """
    yield _summary(report)
    if report.files:
        yield _files(report)
        if sum(file.file.startswith("commitlog/") for file in report.files) > batch:
            yield note(f"At most {count(batch, 'file')} of the log in one go, then the rest.")
    if report.unread:
        yield _unread(report.unread)
    for warning in report.warnings:
        yield bad(printable(warning))


def _summary(report: RetentionReport) -> RenderableType:
    values: list[tuple[str, str | Text]] = [
        ("store", printable(report.store)),
        ("at", local_time(report.at)),
        ("files are kept", f"{count(report.file_reserved_time, 'hour')}"),
        ("they go at hours", _hours(report)),
        ("disk", _disk(report)),
        ("takes messages", good("yes") if report.not_writable is None else bad("no")),
        ("commit log", f"{report.min_offset:,} to {report.max_offset:,}"),
    ]
    if report.not_writable:
        values.append(("", bad(printable(report.not_writable))))
    if report.files:
        values.append(("would go", f"{count(len(report.files), 'file')}, {size(report.length)}"))
        values.append(("would begin at", f"{report.new_min_offset:,}"))
    else:
        values.append(("would go", good("nothing")))
    return named_values(values)


def _hours(report: RetentionReport) -> str:
    hours = printable(report.delete_when)
    if report.is_time:
        return f"{hours} (now is one)"
    return f"{hours} (next: {local_time(report.next_time or 0)})"


def _disk(report: RetentionReport) -> str:
    return (
        f"{report.used_percent} % full (above {report.most_used_percent} % expired files go at any"
        f" hour, above {report.clean_forcibly_percent} % others too,"
        f" above {report.warning_percent} % no messages are taken)"
    )


def _files(report: RetentionReport) -> RenderableType:
    table = rows("Files that would go", [("file", TEXT), ("size", NUMBER), ("why", TEXT)])
    for file in report.files:
        table.add_row(printable(file.file), size(file.size), REASONS[file.reason.value])
    return table


def _unread(groups: list[UnreadReport]) -> RenderableType:
    table = rows("Not read yet", [("group", TEXT), ("topic", TEXT), ("messages", NUMBER)])
    for group in groups:
        table.add_row(
            shortened(group.group, NAME_LENGTH),
            shortened(group.topic, NAME_LENGTH),
            Text(f"{group.messages:,}", style="red"),
        )
    return table
