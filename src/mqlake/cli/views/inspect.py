"""A store's report: its contents and its shutdown state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from rich.text import Text

from mqlake.cli.text import count, local_time, printable, shortened, size
from mqlake.cli.views import damage
from mqlake.cli.views.tables import NUMBER, TEXT, WORD, bad, good, named_values, note, rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.store.report import (
        CommitLogReport,
        CutOffReport,
        IndexFileReport,
        StoreReport,
        TopicReport,
    )

NAME_LENGTH = 48
_MOST_DELETED = 5


def view(report: StoreReport) -> Iterator[RenderableType]:
    """Yield the summary, then topics, index files and damage."""
    yield _summary(report)
    if report.topics:
        yield _topics(report.topics)
    if report.index:
        yield _index(report.index)
    yield from damage.view([*report.commit_log.damage, *report.damage])


def _summary(report: StoreReport) -> RenderableType:
    log, checkpoint = report.commit_log, report.checkpoint
    values: list[tuple[str, str | Text]] = [
        ("store", printable(report.store)),
        ("written by", f"RocketMQ {report.dialect} (from: {report.detected_by})"),
        ("last stop", _last_stop(report)),
        ("commit log", _log(log)),
    ]
    if log.end_reason:
        values.append(("at its end", bad(log.end_reason)))
    if log.beyond_end.records:
        records = count(log.beyond_end.records, "good record")
        values.append(("past it", bad(f"{records}, which RocketMQ drops when it starts")))
    values += [("cut off", bad(_cut_off(part))) for part in log.cut_off]
    if checkpoint:
        values.append(("checkpoint", f"log {local_time(checkpoint.physic_msg_timestamp)}"))
        values.append(("", f"queues {local_time(checkpoint.logics_msg_timestamp)}"))
        values.append(("", f"index {local_time(checkpoint.index_msg_timestamp)}"))
    else:
        values.append(("checkpoint", bad("no readable checkpoint")))
    groups = count(len(report.config.consumer_groups), "consumer group")
    values.append(("config", f"{count(report.config.topics, 'topic')}, {groups}"))
    if deleted := report.config.deleted_before:
        values.append(("deleted", _deleted(deleted)))
    return named_values(values)


def _deleted(deleted: Mapping[str, int]) -> str:
    shown = [
        f"{printable(topic)} before physical offset {before:,}"
        for topic, before in islice(deleted.items(), _MOST_DELETED)
    ]
    more = len(deleted) - len(shown)
    return "; ".join(shown + ([f"{more:,} more topics"] if more else []))


def _cut_off(part: CutOffReport) -> str:
    length = f"{count(part.records, 'good record')}, {size(part.length)}"
    return f"{length} at {part.offset:,}, kept in {printable(part.path)}"


def _last_stop(report: StoreReport) -> Text:
    process = f" (process {report.abort_process})" if report.abort_process else ""
    match report.last_stop_was_clean:
        case None:
            return note(f"a broker has the store open (process {report.owner})")
        case True:
            return good("clean")
        case False:
            return bad(f"not clean: the abort file exists{process}")


def _log(log: CommitLogReport) -> str:
    length = size(log.max_offset - log.min_offset)
    files = count(len(log.files), "file")
    return f"{log.min_offset:,} to {log.max_offset:,} ({length} in {files})"


def _topics(topics: list[TopicReport]) -> RenderableType:
    table = rows(
        "Topics",
        [("topic", TEXT), ("queues", NUMBER), ("messages", NUMBER), ("offsets", TEXT)],
    )
    for topic in topics:
        table.add_row(
            shortened(topic.topic, NAME_LENGTH),
            str(len(topic.queues)),
            f"{sum(queue.max_offset - queue.min_offset for queue in topic.queues):,}",
            "  ".join(f"{q.queue_id}:{q.min_offset}…{q.max_offset}" for q in topic.queues),
        )
    return table


def _index(files: list[IndexFileReport]) -> RenderableType:
    table = rows(
        "Index files",
        [
            ("file", WORD),
            ("entries", NUMBER),
            ("slots used", NUMBER),
            ("from", TEXT),
            ("to", TEXT),
        ],
    )
    for file in files:
        table.add_row(
            file.name,
            f"{file.index_count - 1:,} of {file.max_entries - 1:,}",
            f"{file.slot_count:,}",
            local_time(file.begin_timestamp),
            local_time(file.end_timestamp),
        )
    return table
