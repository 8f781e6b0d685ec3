"""Verify a store: every record, and every queue and index entry against the records.

A split's task reads its records and compares the entries that they should have with the existing
ones; entries that belong to no record are searched afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from mqlake.dispatch.gap import Gap
from mqlake.formats.consume_queue import DEFAULT_DELAY_LEVELS
from mqlake.formats.damage import Damage
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import FAULT_REASONS, Fault
from mqlake.formats.topic_names import LIGHT_PREFIX
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.engine import Engine
from mqlake.jobs.queues.deletions import Deletions
from mqlake.jobs.queues.intervals import Interval, Intervals
from mqlake.jobs.queues.runs import QueueName, queues_of
from mqlake.jobs.source import StoreSource, open_source
from mqlake.jobs.splits.log_end import damage, log_end
from mqlake.jobs.splits.splits import Job, clip, jobs_of, join_gaps, plan, run_until_met, spans
from mqlake.jobs.verify.batch_units import check_unit_files
from mqlake.jobs.verify.findings import EntryFindings, merged
from mqlake.jobs.verify.index import (
    IndexPlan,
    IndexRestJob,
    check_index_file,
    check_index_rest,
    plan_index,
)
from mqlake.jobs.verify.light_files import (
    DAMAGED_LOG,
    LightFilesCheck,
    LightFilesJob,
    check_light_files,
    has_light_files,
)
from mqlake.jobs.verify.queues import QueueFilesJob, check_queue_files
from mqlake.jobs.verify.settled import Settled, plan_live_index, settle
from mqlake.jobs.verify.splits import VerifyJob, VerifyPart, verify_splits
from mqlake.store.log.segments import CommitLog
from mqlake.store.queues.queue_kind import BATCH, SIMPLE, QueueKind


class VerifyReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of a verification.

    Attributes:
        ok: nothing is damaged, missing, wrong or dangling.
        log_end: physical offset at which RocketMQ ends the log, bytes.
        bytes_scanned: bytes of the log, without holes.
        records: good records before the log's end.
        records_beyond: good records past it.
        deleted_topic_records: records of topics that were deleted after they were put, before the
            log end; they need no queue entries.
        damaged_bodies: records whose body has the wrong checksum, before the log end.
        queues, index_files: the number of queues and index files.
        queue_entries, index_entries: the entries compared with the records.
        light_files, light_entries: files of light queues, and their entries, that were compared
            with what the log says.
        torn_records: records whose body is good but whose checksum over all bytes is wrong, in the
            part of the log in which mqlake wrote each record with one.
        damage: every damaged stretch of the log and damaged file; and the first hundred missing,
            wrong and dangling entries of each kind.
        notes: what is not damage, but worth knowing.
    """

    store: str
    ok: bool
    dialect: Dialect
    log_end: int
    bytes_scanned: int
    records: int
    records_beyond: int
    deleted_topic_records: int
    damaged_bodies: int
    torn_records: int
    queues: int
    queue_entries: EntryFindings
    index_files: int
    index_entries: EntryFindings
    light_files: int
    light_entries: int
    damage: list[Damage]
    notes: list[str]


@reports_disk_faults
def verify(
    store: Path,
    engine: Engine,
    *,
    dialect: Dialect | None = None,
    delay_levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS,
    tasks: int | None = None,
) -> VerifyReport:
    """Verify a store; nothing in it is changed, and a broker may run on it.

    What a running broker has not finished when the verification begins is not judged.

    Args:
        dialect: the RocketMQ version whose index rules apply; by default, detected from the store's
            files.
        delay_levels: milliseconds of each delay level; no file of a store has them.
        tasks: the number of tasks that the log is divided into; by default, about one for each
            core.

    Raises:
        StoreError: the store cannot be read.
        JobError: the store has no commit log.
    """
    with open_source(store, dialect) as source:
        return _Verification(engine, source, delay_levels).run(tasks)


class _Verification:
    def __init__(self, engine: Engine, source: StoreSource, delay_levels: tuple[int, ...]) -> None:
        self._engine = engine
        self._source = source
        self._log = source.log
        self._delay_levels = delay_levels
        self._index: list[IndexPlan] = []
        self._end = self._log.limit
        # This comes before anything else is read.
        self._settled: Settled | None = None
        if source.snapshot.owner is not None:
            self._settled = settle(source)
        self._deletions = Deletions(source, self._dispatched)

    @property
    def _dispatched(self) -> int:
        """Physical offset from which entries may be missing."""
        return self._settled.dispatched if self._settled else self._source.undispatched_from

    def run(self, tasks: int | None) -> VerifyReport:
        source, settled = self._source, self._settled
        index_jobs, found = plan_live_index(source) if settled else plan_index(source.directory)
        checks = self._engine.run(check_index_file, index_jobs, "index files")
        self._index = [check.plan for check in checks]
        found += [each for check in checks for each in check.damage]
        covered = spans(self._log)
        jobs = plan(covered, self._engine.parallelism, tasks)
        if settled:
            jobs = clip(jobs, settled.end)
        parts = run_until_met(self._scan, jobs)
        gaps = join_gaps([part.scanned for part in parts])
        self._end = log_end(self._log, gaps, source.recovery_start)
        if settled:
            self._end = min(self._end, settled.end)
        last = max((part.last_record for part in parts), default=-1)
        seen = _records(parts)
        if last >= self._end:
            parts = self._scan(clip(jobs_of(parts), self._end))
        if self._deletions.learn(part.traces for part in parts):
            parts = self._scan(jobs_of(parts))
        queues, queue_entries = self._check_queue_files(parts, gaps)
        queue_entries.merge(merged(part.queue_entries for part in parts))
        index_entries = self._check_index_rest(parts)
        index_entries.merge(merged(part.index_entries for part in parts))
        if settled:
            # They belong to records that came after what was settled.
            queue_entries.stale = index_entries.stale = 0
        torn = [record for part in parts for record in part.torn]
        of_log = damage(self._log, gaps, last) + list(_torn_damage(self._log, torn))
        if settled:
            of_log = settled.before_end(of_log)
        light = DAMAGED_LOG if of_log else self._check_light_files()
        found = of_log + found + light.damage
        for finding in (*queue_entries.faults, *index_entries.faults):
            found += finding.examples
        return VerifyReport(
            store=source.path,
            ok=not found,
            dialect=source.snapshot.detected.dialect,
            log_end=self._end,
            bytes_scanned=sum(span.data_end - span.base for span in covered),
            records=_records(parts),
            records_beyond=seen - _records(parts),
            deleted_topic_records=sum(part.dead for part in parts),
            damaged_bodies=sum(part.damaged_bodies for part in parts),
            torn_records=len(torn),
            queues=queues,
            queue_entries=queue_entries,
            index_files=len(self._index),
            index_entries=index_entries,
            light_files=light.files,
            light_entries=light.entries,
            damage=found,
            notes=[
                *_notes(queue_entries, index_entries, seen - _records(parts)),
                *([light.note] if light.note else ()),
            ],
        )

    def _scan(self, jobs: Sequence[Job]) -> list[VerifyPart]:
        source, snapshot = self._source, self._source.snapshot
        tasks = [
            VerifyJob(
                store=self._source.path,
                splits=splits,
                dialect=snapshot.detected.dialect,
                delay_levels=self._delay_levels,
                batch_topics=source.batch_topics,
                index=self._index,
                undispatched_from=self._dispatched,
                checksummed=snapshot.checksummed,
                is_live=self._settled is not None,
                dead=self._deletions.dead,
            )
            for splits in jobs
        ]
        return self._engine.run(verify_splits, tasks, "records and their entries")

    def _check_queue_files(
        self, parts: Sequence[VerifyPart], gaps: Sequence[Gap]
    ) -> tuple[int, EntryFindings]:
        """Return how many queues of either kind there are, and their entries without a record."""
        damaged = _without_record(self._log, gaps)
        simple = _stated(self._queues(SIMPLE), (part.stated for part in parts))
        batches = _stated(self._queues(BATCH), (part.stated_in_batches for part in parts))
        queues = self._queue_jobs(simple, damaged)
        found = self._engine.run(check_queue_files, queues, "consume queues")
        if batches:
            units = self._queue_jobs(batches, damaged)
            found += self._engine.run(check_unit_files, units, "batch consume queues")
        return len(simple) + len(batches), merged(found)

    def _queues(self, kind: QueueKind) -> Iterator[QueueName]:
        """Yield the queues that have files, without light ones."""
        return (
            queue
            for queue in queues_of(self._source.directory, kind)
            if not queue.topic.startswith(LIGHT_PREFIX)
        )

    def _queue_jobs(
        self, queues: Sequence[tuple[QueueName, list[Interval]]], damaged: list[Interval]
    ) -> list[QueueFilesJob]:
        share = -(-len(queues) // self._engine.parallelism) or 1
        log, dead = (self._log.min_offset, self._end), self._deletions.dead
        shares = (list(queues[first : first + share]) for first in range(0, len(queues), share))
        return [QueueFilesJob(self._source.path, log, damaged, dead, each) for each in shares]

    def _check_index_rest(self, parts: Sequence[VerifyPart]) -> EntryFindings:
        scanned = (scanned for part in parts for scanned in part.scanned)
        covered = Intervals(sorted((each.start, each.stop) for each in scanned if each.found))
        jobs = [
            IndexRestJob(self._source.path, each, (self._log.min_offset, self._end), list(covered))
            for each in self._index
        ]
        return merged(self._engine.run(check_index_rest, jobs, "index entries"))

    def _check_light_files(self) -> LightFilesCheck:
        snapshot = self._source.snapshot
        if not has_light_files(self._source.directory):
            return LightFilesCheck()
        is_stopped = snapshot.owner is None and not snapshot.has_abort_file
        job = LightFilesJob(self._source.path, self._end, self._delay_levels, is_stopped)
        (found,) = self._engine.run(check_light_files, [job], "files of light queues")
        return found


def _stated(
    queues: Iterable[QueueName], parts: Iterable[Mapping[QueueName, list[Interval]]]
) -> list[tuple[QueueName, list[Interval]]]:
    """Return the queue offsets in records, also for queues that have only files."""
    stated: dict[QueueName, list[Interval]] = {queue: [] for queue in queues}
    for part in parts:
        for queue, offsets in part.items():
            stated.setdefault(queue, []).extend(offsets)
    return [(queue, sorted(offsets)) for queue, offsets in sorted(stated.items())]


def _records(parts: Sequence[VerifyPart]) -> int:
    return sum(part.records for part in parts)


def _torn_damage(log: CommitLog, torn: Sequence[Interval]) -> Iterator[Damage]:
    """Yield the damage of records (physical offset, bytes) with a wrong checksum."""
    for offset, size in torn:
        if segment := log.segment_at(offset):
            yield Damage(segment.path, offset - segment.base, size, FAULT_REASONS[Fault.TORN])


def _without_record(log: CommitLog, gaps: Sequence[Gap]) -> list[Interval]:
    """Return the stretches between the log's first byte and its last that contain no good
    record.
    """
    damaged = [
        (gap.physical_offset, gap.physical_offset + gap.length)
        for gap in gaps
        if gap.fault is not Fault.CRC
    ]
    present = Intervals((segment.base, segment.end) for segment in log.segments)
    return sorted(damaged + present.missing(log.min_offset, log.limit))


def _notes(queues: EntryFindings, index: EntryFindings, beyond: int) -> list[str]:
    notes: list[str] = []
    if beyond:
        notes.append(f"{beyond} good records past the log's end: RocketMQ drops them")
    for name, found in (("queue", queues), ("index", index)):
        for count, text in (
            (found.undispatched, "missing because the broker had not dispatched them yet"),
            (found.lost, "of records that are damaged themselves"),
            (found.expired, "of records before the log's beginning"),
            (found.stale, "of records past the log's end, which RocketMQ's recovery leaves"),
            (found.blank, "before a queue's first record"),
            (found.dead, "of records of deleted topics"),
            (found.repeated, "of an offset or key that was dispatched twice"),
        ):
            if count:
                notes.append(f"{count} {name} entries {text}")
    return notes
