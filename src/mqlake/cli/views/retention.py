"""A store's retention: what would be removed, why, and which groups have not read it."""

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
    "log": "its part of the log is removed",
}


def view(report: RetentionReport, batch: int) -> Iterator[RenderableType]:
    """Yield the summary, then the files that would be removed, and what consumers would lose.

    Args:
        batch: files of the log that are removed in one round.
    """
    yield _summary(report)
    if report.files:
        yield _files(report)
        if sum(file.file.startswith("commitlog/") for file in report.files) > batch:
            yield note(
                f"At most {count(batch, 'file')} of the log are removed in one round, the others "
                "later."
            )
    if report.unread:
        yield _unread(report.unread)
    for warning in report.warnings:
        yield bad(printable(warning))


def _summary(report: RetentionReport) -> RenderableType:
    values: list[tuple[str, str | Text]] = [
        ("store", printable(report.store)),
        ("at", local_time(report.at)),
        ("files are kept", f"{count(report.file_reserved_time, 'hour')}"),
        ("removed at the hours", _hours(report)),
        ("disk", _disk(report)),
        ("accepts messages", good("yes") if report.not_writable is None else bad("no")),
        ("commit log", f"{report.min_offset:,} to {report.max_offset:,}"),
    ]
    if report.not_writable:
        values.append(("", bad(printable(report.not_writable))))
    if report.files:
        values.append(
            ("would be removed", f"{count(len(report.files), 'file')}, {size(report.length)}")
        )
        values.append(("log would begin at", f"{report.new_min_offset:,}"))
    else:
        values.append(("would be removed", good("nothing")))
    return named_values(values)


def _hours(report: RetentionReport) -> str:
    hours = printable(report.delete_when)
    if report.is_time:
        return f"{hours} (now is one)"
    return f"{hours} (next: {local_time(report.next_time or 0)})"


def _disk(report: RetentionReport) -> str:
    return (
        f"{report.used_percent} % full (above {report.most_used_percent} %: expired files are "
        f"removed at any hour; above {report.clean_forcibly_percent} %: others, too; above "
        f"{report.warning_percent} %: no messages are accepted)"
    )


def _files(report: RetentionReport) -> RenderableType:
    table = rows("Files that would be removed", [("file", TEXT), ("size", NUMBER), ("why", TEXT)])
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
