"""The report of a rebuild."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from mqlake.formats.damage import Damage
from mqlake.jobs.queues.deletions import Deletions
from mqlake.jobs.rebuild.batch_queues import BatchQueues
from mqlake.jobs.rebuild.fixed_point import FixedPoint
from mqlake.jobs.rebuild.settings import Settings
from mqlake.jobs.rebuild.stage_index import IndexPart
from mqlake.jobs.rebuild.stage_queues import QueuePart
from mqlake.jobs.source import StoreSource
from mqlake.jobs.splits.log_end import damage
from mqlake.jobs.splits.splits import Span
from mqlake.store.log.segments import CommitLog


class RebuildReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of a rebuild, and what was wrong with the log.

    Attributes:
        store: the directory that was read.
        output: the directory of the new files; the same if it was rebuilt in place.
        log_end: physical offset at which RocketMQ ends the log, bytes.
        bytes_scanned: bytes of the log, without holes.
        records: records that were dispatched.
        records_beyond: good records past the log's end, which are not dispatched.
        deleted_topic_records: records of topics that were deleted after they were put, which get no
            queue entries.
        recreated_topic_records: those of them whose topic exists again: it has settings.
        queues: consume queues that were written.
        queues_kept: consume queues without records in the log, which are not changed.
        queue_entries: entries of records in the written queues.
        blank_entries: entries without a record: before a queue's first one, and for lost ones.
        index_files: index files that were written.
        index_entries: entries in them.
        refused: records without a queue entry, because its position is taken or implausible.
        passes: how often the log was read; more than once if it is damaged.
        damage: what is wrong with the log; the first hundred refused records of each task.
    """

    store: str
    output: str
    settings: Settings
    log_end: int
    bytes_scanned: int
    records: int
    records_beyond: int
    deleted_topic_records: int
    recreated_topic_records: int
    queues: int
    queues_kept: int
    queue_entries: int
    blank_entries: int
    index_files: int
    index_entries: int
    refused: int
    passes: int
    damage: list[Damage]


class WrittenQueues(NamedTuple):
    """The numbers of the queues that a rebuild wrote.

    Attributes:
        rebuilt: consume queues that were written.
        carried: consume queues without records in the log, which are not changed.
        blanks: entries without a record.
        batches: the numbers of batch consume queues.
    """

    rebuilt: int
    carried: int
    blanks: int
    batches: BatchQueues


class Rebuilt(NamedTuple):
    """What a rebuild read and wrote: `covered` are the segments of the log."""

    source: StoreSource
    settings: Settings
    covered: Sequence[Span]
    outcome: FixedPoint
    queues: WrittenQueues
    indexes: Sequence[IndexPart]


def report_of(done: Rebuilt, output: str, deletions: Deletions) -> RebuildReport:
    """Return the report of a rebuild whose files are complete."""
    outcome, queues, log = done.outcome, done.queues, done.source.log
    parts, batches = outcome.parts, queues.batches
    last_record = max((part.last_record for part in parts), default=-1)
    dead = sum((Counter(part.dead) for part in parts), Counter[str]())
    return RebuildReport(
        store=done.source.path,
        output=output,
        settings=done.settings,
        log_end=outcome.log_end,
        bytes_scanned=sum(span.data_end - span.base for span in done.covered),
        records=sum(part.records for part in parts),
        records_beyond=outcome.records_beyond,
        deleted_topic_records=dead.total(),
        recreated_topic_records=deletions.of_existing(dead),
        queues=queues.rebuilt + batches.queues,
        queues_kept=queues.carried + batches.kept,
        queue_entries=sum(part.entries for part in parts) + batches.units,
        blank_entries=queues.blanks,
        index_files=len(done.indexes),
        index_entries=sum(part.header.index_count - 1 for part in done.indexes),
        refused=sum(part.refused_count for part in parts) + batches.refused,
        passes=outcome.passes,
        damage=damage(log, outcome.gaps, last_record) + list(_refused(log, parts)),
    )


def _refused(log: CommitLog, parts: Sequence[QueuePart]) -> Iterator[Damage]:
    for refused in (refused for part in parts for refused in part.refused):
        segment = log.segment_at(refused.physical_offset)
        if segment is not None:
            at = refused.physical_offset - segment.base
            yield Damage(segment.path, at, 0, f"the record has no queue entry: {refused.reason}")
