"""Rebuild consume queues, index files and checkpoint from the commit log (docs/rebuild.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mqlake.errors import JobError
from mqlake.formats import archive_manifest, checkpoint
from mqlake.formats.checkpoint import Checkpoint
from mqlake.formats.consume_queue import DEFAULT_DELAY_LEVELS
from mqlake.formats.dialect import Dialect
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.engine import Engine
from mqlake.jobs.linked_parts import link_scratch, linked_parts
from mqlake.jobs.queues.carry_over import carry_over
from mqlake.jobs.queues.deletions import Deletions
from mqlake.jobs.queues.files import QueueFileWriter
from mqlake.jobs.rebuild import stage_index
from mqlake.jobs.rebuild.batch_queues import rebuild_batch_queues
from mqlake.jobs.rebuild.fixed_point import FixedPoint, queue_offsets, run_to_fixed_point
from mqlake.jobs.rebuild.report import RebuildReport, Rebuilt, WrittenQueues, report_of
from mqlake.jobs.rebuild.settings import Settings, settle
from mqlake.jobs.rebuild.stage_index import IndexPart, build_index
from mqlake.jobs.rebuild.stage_queues import QueuePart, RebuildQueueJob
from mqlake.jobs.source import StoreSource, open_source
from mqlake.jobs.splits.splits import plan, spans
from mqlake.jobs.swap import Exchange, require_empty, written_alone
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.local_write import fsync_directory, fsync_file
from mqlake.storage.owner_lock import LOCK_NAME
from mqlake.store.queues.queue_kind import BATCH, SIMPLE

_BLANKS_ALLOWED = 1 << 20


@reports_disk_faults
def rebuild(
    store: Path,
    engine: Engine,
    *,
    out: Path | None = None,
    dialect: Dialect | None = None,
    queue_file_size: int | None = None,
    hash_slots: int | None = None,
    max_index: int | None = None,
    delay_levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS,
    tasks: int | None = None,
) -> RebuildReport:
    """Rebuild into `out`, which must be empty or absent, or in place without it.

    In place, the old files stay until the new ones are complete and durable, and no broker may own
    the store. If a rebuild is killed, the store is as it was, or the next one finishes the exchange
    of the files.

    Args:
        dialect: the RocketMQ version whose index rules and checkpoint fields apply; by default,
            detected from the store's files.
        queue_file_size: bytes of a consume queue file; by default, as before, otherwise RocketMQ's
            default.
        hash_slots: of an index file, likewise.
        max_index: entries of an index file, likewise.
        delay_levels: milliseconds of each delay level; no file of a store has them.
        tasks: the number of tasks that the log is divided into; by default, about one for each
            core.

    Raises:
        StoreError: the store cannot be read, or is in use by a broker.
        FormatError: a file cannot have these sizes.
        JobError: `out` is not empty, or the store cannot be rebuilt, or is an archive.
    """

    def settings_of(source: StoreSource) -> Settings:
        return settle(
            source.snapshot,
            queue_file_size=queue_file_size,
            hash_slots=hash_slots,
            max_index=max_index,
            delay_levels=delay_levels,
        )

    with open_source(store, dialect) as source:
        target = source.directory.root if out is None else out.absolute()
        settings_of(source)
    if out is None:
        _refuse_archive(target)
    else:
        require_empty(target)
    directory, linked = LocalOwnedDirectory(target), linked_parts(target)
    with directory.own(LOCK_NAME) if out is None else written_alone(target):
        exchange = Exchange(directory, linked)
        exchange.begin()
        try:
            link_scratch(target, linked)
            # Files may have come into place only now: an interrupted exchange was completed.
            with open_source(store, dialect) as source:
                report = _build(engine, source, settings_of(source), directory, tasks)
            exchange.commit()
        except BaseException:
            exchange.give_up()
            raise
    return report


def _refuse_archive(target: Path) -> None:
    if (target / archive_manifest.NAME).exists():
        raise JobError(
            f"{target}: this is an archive, whose files its {archive_manifest.NAME} names; restore "
            "the store into another directory (docs/archive.md), or give --out"
        )


def _build(
    engine: Engine,
    source: StoreSource,
    settings: Settings,
    directory: LocalOwnedDirectory,
    tasks: int | None,
) -> RebuildReport:
    new, work = directory.root / Exchange.new, directory.root / Exchange.work
    in_place = directory.root == source.directory.root
    deletions = Deletions(source, source.undispatched_from, is_strict=True)
    template = _template(source, settings, deletions, new, work / "keys")
    covered = spans(source.log)
    jobs = plan(covered, engine.parallelism, tasks)
    outcome = run_to_fixed_point(engine, source, jobs, template, deletions)
    queues = _write_queues(source, outcome, new, settings.queue_file_size, in_place=in_place)
    with ThreadPoolExecutor(1) as beside:
        # The disk writes the queues while the processor builds the index.
        trees = [new / kind.directory for kind in (SIMPLE, BATCH)]
        syncing = [beside.submit(_sync_tree, tree) for tree in trees if tree.is_dir()]
        indexes = _index(engine, outcome.parts, work / "index", new / "index", settings)
        for each in syncing:
            each.result()
    stamp = _checkpoint(outcome.parts, indexes, source.snapshot.checkpoint or Checkpoint())
    (new / "checkpoint").write_bytes(checkpoint.encode(stamp, settings.dialect))
    fsync_file(new / "checkpoint")
    fsync_directory(new / "index")
    if in_place:
        deletions.keep(directory)
    done = Rebuilt(source, settings, covered, outcome, queues, indexes)
    return report_of(done, str(directory.root), deletions)


def _template(
    source: StoreSource, settings: Settings, deletions: Deletions, new: Path, keys: Path
) -> RebuildQueueJob:
    """Return a job of stage one without splits; create the directory of its keys."""
    keys.mkdir()
    return RebuildQueueJob(
        store=source.path,
        splits=(),
        output=str(new),
        keys=str(keys),
        queue_file_size=settings.queue_file_size,
        dialect=settings.dialect,
        delay_levels=settings.delay_levels,
        batch_topics=source.batch_topics,
        dead=deletions.dead,
    )


def _write_queues(
    source: StoreSource, outcome: FixedPoint, new: Path, file_size: int, *, in_place: bool
) -> WrittenQueues:
    """Complete the consume queues that stage one wrote, and write the batch consume queues."""
    blanks = _fill(new, file_size, outcome)
    rebuilt = queue_offsets(outcome.parts)
    carried = carry_over(source, new, rebuilt) if in_place else 0
    (new / "consumequeue").mkdir(exist_ok=True)
    pieces = [piece for part in outcome.parts for piece in part.units]
    batches = rebuild_batch_queues(source, pieces, new, in_place=in_place)
    if in_place and source.directory.is_directory(BATCH.directory):
        (new / BATCH.directory).mkdir(exist_ok=True)
    return WrittenQueues(len(rebuilt), carried, blanks, batches)


def _fill(root: Path, file_size: int, outcome: FixedPoint) -> int:
    """Write the blank entries: RocketMQ's own before a queue's first record, and for lost ones.

    RocketMQ's recovery would end a queue at a position without an entry.
    """
    queues = queue_offsets(outcome.parts)
    lost = {queue: offsets.missing(offsets.first, offsets.end) for queue, offsets in queues.items()}
    allowed = _BLANKS_ALLOWED + outcome.lost + 2 * sum(part.records for part in outcome.parts)
    if sum(end - start for holes in lost.values() for start, end in holes) > allowed:
        raise JobError(
            "the queue offsets of the records leave more positions empty than records can be "
            "lost; this commit log cannot be rebuilt"
        )
    count = 0
    with QueueFileWriter(root, file_size) as files:
        for queue, offsets in queues.items():
            lead = (files.first_of_file(offsets.first), offsets.first)
            for start, end in (lead, *lost[queue]):
                files.write_blanks(queue, start, end)
                count += end - start
    return count


def _index(
    engine: Engine,
    parts: Sequence[QueuePart],
    scratch: Path,
    target: Path,
    settings: Settings,
) -> list[IndexPart]:
    scratch.mkdir(exist_ok=True)
    target.mkdir(exist_ok=True)
    last_record = max((part.last_record for part in parts), default=-1)
    last_keyed = max((part.last_keyed for part in parts), default=-1)
    jobs = stage_index.plan(
        [part.spill for part in parts],
        scratch,
        settings.hash_slots,
        settings.max_index,
        roll=last_record > last_keyed,
    )
    built = engine.run(build_index, jobs, "index files")
    for part, name in zip(built, stage_index.names([p.header for p in built]), strict=True):
        Path(part.path).rename(target / name)
    return built


def _checkpoint(
    parts: Sequence[QueuePart], indexes: Sequence[IndexPart], old: Checkpoint
) -> Checkpoint:
    """Return the checkpoint that RocketMQ would write once all of the log is flushed and
    dispatched.
    """
    seen = [part for part in parts if part.last_record >= 0]
    queued = [part for part in parts if part.last_queued >= 0]
    return Checkpoint(
        physic_msg_timestamp=seen[-1].last_record_time if seen else 0,
        logics_msg_timestamp=queued[-1].last_queued_time if queued else 0,
        index_msg_timestamp=indexes[-1].header.end_timestamp if indexes else 0,
        master_flushed_offset=old.master_flushed_offset,
        confirm_physical_offset=seen[-1].last_record if seen else 0,
        logics_physical_offset=queued[-1].last_queued if queued else 0,
    )


def _sync_tree(root: Path) -> None:
    """Return once all files and names below `root` are durable."""
    for directory, _, names in os.walk(root):
        for name in names:
            fsync_file(Path(directory, name))
        fsync_directory(Path(directory))
