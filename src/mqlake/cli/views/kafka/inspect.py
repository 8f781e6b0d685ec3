"""Partitions: their contents and their shutdown state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from mqlake.cli.text import count, local_time, printable, shortened, size
from mqlake.cli.views import damage
from mqlake.cli.views.tables import NUMBER, TEXT, WORD, bad, good, named_values, note, rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.kafka.summary import PartitionSummary, Summary

NAME_LENGTH = 48


def view(summary: Summary) -> Iterator[RenderableType]:
    """Yield a table of partitions, or all about a single one; then what is wrong."""
    if len(summary.partitions) == 1:
        yield from _one(summary.partitions[0])
    else:
        yield _total(summary)
        if summary.partitions:
            yield _partitions(summary.partitions)
    found = [one for partition in summary.partitions for one in partition.damage]
    yield from damage.view([*summary.damage, *found])


def _total(summary: Summary) -> RenderableType:
    topics = {partition.topic for partition in summary.partitions}
    length = size(sum(partition.size for partition in summary.partitions))
    partitions = count(len(summary.partitions), "partition")
    return named_values(
        [
            ("log directory", printable(summary.path)),
            ("last stop", _last_stop(summary)),
            ("holds", f"{partitions} of {count(len(topics), 'topic')}, {length} of log"),
        ]
    )


def _last_stop(summary: Summary) -> Text:
    if summary.owner is not None:
        return note(f"a broker has it open (process {summary.owner})")
    if summary.last_stop_was_clean:
        return good("clean")
    return bad("not clean: Kafka would recover its logs from their recovery points")


def _partitions(partitions: list[PartitionSummary]) -> RenderableType:
    columns = [
        ("topic", TEXT), ("partition", NUMBER), ("from offset", NUMBER), ("to before", NUMBER),
        ("segments", NUMBER), ("log", NUMBER), ("undecided from", NUMBER),
    ]  # fmt: skip
    table = rows("Partitions", columns)
    for one in partitions:
        table.add_row(
            shortened(one.topic or "-", NAME_LENGTH),
            str(one.partition),
            f"{one.log_start_offset:,}",
            f"{one.log_end_offset:,}",
            f"{len(one.segments):,}",
            size(one.size),
            _undecided(one),
        )
    return table


def _undecided(one: PartitionSummary) -> str:
    is_decided = one.last_stable_offset in (None, one.log_end_offset)
    return "" if is_decided else f"{one.last_stable_offset:,}"


def _one(one: PartitionSummary) -> Iterator[RenderableType]:
    epochs = ", ".join(f"{epoch.epoch} from {epoch.start_offset:,}" for epoch in one.leader_epochs)
    values: list[tuple[str, str | Text]] = [
        ("partition", printable(one.path)),
        ("topic id", one.topic_id or "-"),
        ("offsets", f"{one.log_start_offset:,} to before {one.log_end_offset:,}"),
        ("log", f"{size(one.size)} in {count(len(one.segments), 'segment')}"),
        ("leader epochs", epochs or "-"),
    ]
    if one.high_watermark is not None:
        values.insert(3, ("high watermark", f"{one.high_watermark:,}"))
    if _undecided(one):
        values.append(("undecided", bad(f"from offset {_undecided(one)}: an open transaction")))
    yield named_values(values)
    if one.segments:
        yield _segments(one)


def _segments(one: PartitionSummary) -> RenderableType:
    columns = [
        ("from offset", NUMBER), ("to before", NUMBER), ("log", NUMBER), ("latest time", WORD),
        ("index entries", NUMBER), ("time entries", NUMBER), ("aborted", NUMBER),
    ]  # fmt: skip
    table = rows("Segments", columns)
    for segment in one.segments:
        latest = segment.largest_timestamp
        table.add_row(
            f"{segment.base_offset:,}",
            f"{segment.next_offset:,}",
            size(segment.size),
            "-" if latest < 0 else local_time(latest),
            f"{segment.index_entries:,}",
            f"{segment.time_index_entries:,}",
            f"{segment.aborted_transactions:,}" if segment.aborted_transactions else "",
        )
    return table
