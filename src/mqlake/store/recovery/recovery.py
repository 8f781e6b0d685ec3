"""Bring a store directory into a good state when it is opened (docs/live-store.md, "Recovery").

Upstream: `DefaultMessageStore.load`, `CommitLog.recoverNormally` and `recoverAbnormally`,
`truncateDirtyLogicFiles`, `recoverTopicQueueTable`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import msgspec

from mqlake.formats.checkpoint import STILL_OPEN, Checksummed, ResumePoint
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import FAULT_REASONS, Fault
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.detect import detect
from mqlake.store.dispatch.dispatcher import Dispatcher, Last
from mqlake.store.index.index_files import IndexFiles
from mqlake.store.index.owned_index import OwnedIndex
from mqlake.store.log import cut_off
from mqlake.store.log.end import last_written_start, recovery_start
from mqlake.store.log.owned_log import OwnedCommitLog, open_owned_log
from mqlake.store.log.record_rules import ChecksumRule, ForcedRule, RecordRule
from mqlake.store.log.scan import head_at, search
from mqlake.store.log.segments import CommitLog
from mqlake.store.log.steps import Step
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.queues.queue_offsets import QueueOffsets
from mqlake.store.recovery.abort_mark import mark_open, was_left_open
from mqlake.store.recovery.checkpoint_file import CheckpointFile, reached
from mqlake.store.recovery.recovery_index import IndexRecovery, IndexStart
from mqlake.store.recovery.recovery_queues import QueueRecovery, find_file_size
from mqlake.store.report import CutOffReport
from mqlake.store.settings import StoreSettings

_log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Told how far recovery is: bytes of the log looked at, and bytes to look at in all."""

_NEVER = (1 << 63) - 1

_LONG = 8 << 20
"""Bytes of log that are worth a thread."""


class RecoveryReport(msgspec.Struct, frozen=True, rename="camel"):
    """What opening a store found and mended.

    Attributes:
        is_clean: the last process stopped cleanly.
        dialect: whose index rules hold.
        start: physical offset from which on the log was looked at.
        log_end: physical offset where the log ends.
        fault: what is there instead of a record.
        records: records that were looked at.
        queues: queues that have files.
        queue_entries: queue entries that were written again.
        refused: records without a queue entry, because its place cannot be believed.
        is_rebuilt: queue entries were missing where none may be, so that all queues were derived
            from the log again.
        cut_off: what was cut off the log though it has good records, and where it is kept.
    """

    is_clean: bool
    dialect: Dialect
    start: int
    log_end: int
    fault: Fault
    records: int
    queues: int
    queue_entries: int
    refused: int
    is_rebuilt: bool
    cut_off: tuple[CutOffReport, ...] = ()


@dataclass(frozen=True)
class Derived:
    """What follows from a log, complete up to its end."""

    queues: OwnedQueues
    index: OwnedIndex
    dispatcher: Dispatcher
    offsets: QueueOffsets
    checkpoint: CheckpointFile
    report: RecoveryReport


@dataclass(frozen=True)
class Recovered(Derived):
    """A store, ready to be appended to."""

    log: OwnedCommitLog


def recover(
    directory: OwnedDirectory,
    settings: StoreSettings,
    clock: Clock,
    progress: Progress | None = None,
) -> Recovered:
    """Find what of a store is on the disk, complete what follows from its log, clear the rest.

    Everything is on the disk when it returns, and the checkpoint says so: the next one has nothing
    to do. May be cut off at any moment, and called again.

    Args:
        directory: held by this process.
        progress: told now and then how far it is.

    Raises:
        StoreError: the store cannot be opened.
        DiskError: the disk failed.
    """
    is_clean = not was_left_open(directory)
    log = open_owned_log(directory, settings.mapped_file_size_commit_log)
    found = _Recovery(directory, settings, clock, progress, log, log, is_clean).run()
    return Recovered(**vars(found), log=log)


def recover_derived(
    directory: OwnedDirectory,
    settings: StoreSettings,
    clock: Clock,
    log: CommitLog,
    progress: Progress | None = None,
) -> Derived:
    """Complete what follows from a log that somebody else writes: `recover` without touching it.

    Args:
        directory: held by this process.
        log: of this directory.

    Raises:
        StoreError: the store cannot be opened.
        DiskError: the disk failed.
    """
    is_clean = not was_left_open(directory)
    return _Recovery(directory, settings, clock, progress, log, None, is_clean).run()


class _Recovery:
    """Args: `owned`: the log once more where it may be cut off, None where it must not be."""

    def __init__(
        self,
        directory: OwnedDirectory,
        settings: StoreSettings,
        clock: Clock,
        progress: Progress | None,
        log: CommitLog,
        owned: OwnedCommitLog | None,
        is_clean: bool,
    ) -> None:
        self._directory, self._settings, self._progress = directory, settings, progress
        self._clock, self._cut_off = clock, list[CutOffReport]()
        self._log, self._owned, self._is_clean = log, owned, is_clean
        self._checkpoint = CheckpointFile.open(directory)
        self._point = self._checkpoint.resume
        if self._point is not None and not self._reaches(self._point):
            self._point = self._cut_to(self._point)
        if owned is None or self._point is None:
            # Somebody else writes the log, or it is not the one that was open here.
            self._checkpoint.checksummed = None
        self._rule = self._find_rule()
        self._dialect = self._checkpoint.dialect = self._find_dialect()
        size = find_file_size(directory, settings.mapped_file_size_consume_queue)
        self._queues = OwnedQueues(directory, size)
        self._queues.load()
        self._index = OwnedIndex(
            directory, clock, settings.max_hash_slot_num, settings.max_index_num
        )
        self._index.is_used = settings.message_index_enable

    def run(self) -> Derived:
        log, queues, index = self._log, self._queues, self._index
        lacks_files = self._is_clean and self._lacks_files()
        if lacks_files:
            # The next start, if this one dies, would take them for removed by retention.
            self._checkpoint.distrust_queues()
        if self._is_clean:
            mark_open(self._directory)
        start = self._find_start()
        indexing = self._recover_index()
        dispatcher = self._dispatcher(min(start, indexing.first))
        start = dispatcher.position
        kept = self._point.position if self._point else start
        judge = self._judge(start, kept)
        synced = self._point.position if self._point else 0
        with self._syncing(start, synced):
            fault = self._dispatch(dispatcher, indexing)
        end = dispatcher.position
        judge.settle()
        is_broken = judge.is_broken or lacks_files or self._lacks_ends(judge)
        if is_broken:
            self._derive_queues_again(dispatcher)
        offsets = QueueOffsets()
        for queue in queues:
            offsets.set(queue.topic, queue.queue_id, queue.end)
        queues.end_before = None
        queues.min_physical_offset = log.min_offset
        index.clear_behind()
        if self._owned is not None:
            self._keep_aside(end, fault)
            self._owned.recover_to(end, synced)
        queues.sync()
        index.sync()
        self._checkpoint.checksummed = self._find_checksummed(end)
        self._checkpoint.write(reached(dispatcher, index))
        report = RecoveryReport(
            self._is_clean,
            self._dialect,
            start,
            end,
            fault,
            dispatcher.count,
            len(queues.queues()),
            dispatcher.entries,
            dispatcher.refused,
            is_broken,
            tuple(self._cut_off),
        )
        return Derived(queues, index, dispatcher, offsets, self._checkpoint, report)

    def _find_rule(self) -> RecordRule | None:
        """Return what is asked of records beyond RocketMQ's check."""
        if self._settings.force_verify_prop_crc:
            return ForcedRule()
        part = self._checkpoint.checksummed
        return None if part is None else ChecksumRule(part)

    def _find_checksummed(self, end: int) -> Checksummed | None:
        """Return the part of the log in which records have checksums, from now on.

        It goes on if nobody else has appended since; else a new one begins at the log's end.
        """
        if self._owned is None or not self._settings.enabled_append_prop_crc:
            return None
        part = self._checkpoint.checksummed
        if part is None or part.start > end or part.end not in (end, STILL_OPEN):
            return Checksummed(end, STILL_OPEN)
        return Checksummed(part.start, STILL_OPEN)

    def _keep_aside(self, end: int, fault: Fault) -> None:
        """Keep what will be cut off at a physical offset, if there are good records in it."""
        now = self._clock.milliseconds()
        kept = cut_off.keep(self._directory, self._log, end, now)
        self._cut_off += kept
        for part in kept:
            _log.warning(
                "%s: the commit log is cut off at physical offset %d: %s;"
                " %d good records after it are kept in %s for fileReservedTime, %d hours",
                self._directory.describe(),
                end,
                FAULT_REASONS[fault],
                part.records,
                part.path,
                self._settings.file_reserved_time,
            )

    def _find_dialect(self) -> Dialect:
        if self._point is not None:
            return self._point.dialect
        files = IndexFiles.open(self._directory)
        found = detect(self._directory, self._log, files, self._checkpoint.found)
        return self._settings.index_dialect if found.is_assumed else found.dialect

    def _reaches(self, point: ResumePoint) -> bool:
        """Say whether the log still has what was on the disk at the checkpoint."""
        log = self._log
        if not log.min_offset <= point.position <= log.limit:
            return False
        if point.last_record < log.min_offset:
            return True
        head = head_at(log, point.last_record)
        return head is not None and point.last_record + head.size <= point.position

    def _cut_to(self, point: ResumePoint) -> ResumePoint | None:
        """Cut the log to where the checkpoint left it, if the file behind was lost in a crash.

        The disk may have kept later files all the same. Retention removes no file that a
        checkpoint has not left behind.
        """
        if self._owned is None or self._is_clean or point.position >= self._log.min_offset:
            return None
        self._keep_aside(point.position, Fault.SHORT)
        self._owned.recover_to(point.position)
        return point

    def _find_start(self) -> int:
        """Return where a record starts before which everything is in the queues."""
        if self._point is not None:
            return self._point.position
        if not self._is_clean:
            return recovery_start(self._log, self._checkpoint.found, self._dialect)
        newest = self._newest_entry()
        return last_written_start(self._log) if newest is None else newest

    def _newest_entry(self) -> int | None:
        """Return the greatest physical offset that the last entry of a queue rightly names."""
        judge = self._judge(self._log.limit)
        offsets = (judge.last_offset(queue) for queue in self._queues)
        return max((offset for offset in offsets if offset is not None), default=None)

    def _recover_index(self) -> IndexStart:
        if not self._index.is_used:
            return IndexStart(_NEVER)
        index = IndexRecovery(self._directory, self._index, self._log.min_offset)
        found = self._checkpoint.found
        if self._point is not None:
            start = index.resume(self._point, found.index_msg_timestamp)
            if start is not None:
                return start
        is_clean = self._is_clean and self._point is None
        return index.start_anew(found, self._checkpoint.distrust_index, is_clean=is_clean)

    def _dispatcher(self, position: int) -> Dispatcher:
        dispatcher = Dispatcher(
            self._log,
            self._queues,
            self._index if self._index.is_used else None,
            dialect=self._dialect,
            message_delay_level=self._settings.message_delay_level,
            position=position,
            left_out=frozenset(self._directory.names("batchconsumequeue")),
            # A gap is a file whose name the disk has lost; in RocketMQ's stores, one that someone
            # has lost, behind which RocketMQ goes on.
            across_gaps=self._point is None,
            rule=self._rule,
            is_arriving=self._owned is None,
        )
        found, point = self._checkpoint.found, self._point
        if point is not None:
            dispatcher.last_record = Last(point.last_record, found.physic_msg_timestamp)
            dispatcher.last_queued = Last(point.last_queued, point.last_queued_timestamp)
        return dispatcher

    @contextmanager
    def _syncing(self, start: int, synced: int) -> Generator[None]:
        """Sync the log meanwhile, if it is long: a process that died may have left much of it.

        What is dispatched from it must not reach the disk before it; `recover_to` syncs the rest.
        """
        if self._owned is None or self._log.limit - start <= _LONG:
            yield
            return
        with ThreadPoolExecutor(1) as beside:
            syncing = beside.submit(self._owned.sync_files, synced)
            yield
            syncing.result()

    def _dispatch(self, dispatcher: Dispatcher, indexing: IndexStart) -> Fault:
        """Dispatch up to the first place that is no record; return what is there."""
        limit, start = self._log.limit, dispatcher.position
        for step in _steps(dispatcher, limit):
            dispatcher.take(step, *indexing)
            dispatcher.position = step.end
            if step.fault is not Fault.GOOD:
                return step.fault
            if self._progress is not None:
                self._progress(step.end - start, limit - start)
        raise AssertionError("a log without an end")

    def _judge(self, start: int, kept: int | None = None) -> QueueRecovery:
        distrust = self._checkpoint.distrust_queues
        return QueueRecovery(self._queues, self._log, start, kept, distrust)

    def _lacks_files(self) -> bool:
        """Say whether queues of a store that stopped cleanly have less than at the checkpoint.

        After a crash, retention may have removed their first files since. Files whose removal is
        not on the disk yet may come back with a power cut, so their last ones are missed here too.
        """
        point, queues = self._point, self._queues
        if point is None:
            return False
        if sum(queue.first for queue in queues) > point.queue_starts:
            return True
        return sum(queue.written_end() for queue in queues) < point.queue_ends

    def _lacks_ends(self, judge: QueueRecovery) -> bool:
        """Say whether queues end before where they did at the checkpoint."""
        return self._point is not None and judge.ends < self._point.queue_ends

    def _derive_queues_again(self, dispatcher: Dispatcher) -> None:
        """Write all queue entries of the log, behind damage too."""
        # A power cut from here on may leave some of it: nothing of that may be believed.
        self._checkpoint.distrust_queues()
        end, dispatcher.position = dispatcher.position, self._log.min_offset
        judge = self._judge(self._log.min_offset)
        while True:
            self._dispatch(dispatcher, IndexStart(_NEVER))
            segment = self._log.segment_at(dispatcher.position)
            if segment is None or dispatcher.position >= end:
                break
            stop = min(segment.end, end)
            dispatcher.position = search(self._log, segment, dispatcher.position + 1, stop)
        dispatcher.position = end
        judge.settle()


def _steps(dispatcher: Dispatcher, limit: int) -> Iterator[Step]:
    """Yield the steps from the dispatcher's position to the first fault.

    Of a long log, each is read and checked while the one before it is dispatched.
    """
    step = dispatcher.read(dispatcher.position, limit)
    with ThreadPoolExecutor(1) if limit - step.end > _LONG else nullcontext() as beside:
        while step.fault is Fault.GOOD:
            ahead = beside and beside.submit(dispatcher.read, step.end, limit)
            yield step
            step = ahead.result() if ahead else dispatcher.read(step.end, limit)
    yield step
