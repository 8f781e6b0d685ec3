"""Derive the state that follows from a log: the second stage of recovery, which only reads and
computes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from mqlake.dispatch.batch import Batch
from mqlake.formats.consume_queue import parse_delay_levels
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Fault
from mqlake.storage.protocol import Directory
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.log.end import last_written_start, recovery_start
from mqlake.store.log.record_rules import ChecksumRule, ForcedRule, RecordRule
from mqlake.store.log.segments import CommitLog
from mqlake.store.log.steps import LogSteps
from mqlake.store.queues.queue_kind import BATCH, SIMPLE, QueueKind
from mqlake.store.recovery.find import StoreContents
from mqlake.store.recovery.log_walk import LogWalk, Progress, Stretch, Walked
from mqlake.store.recovery.queue_bytes import QueueBytes
from mqlake.store.recovery.recovery_batches import BatchQueueRecovery
from mqlake.store.recovery.recovery_incarnations import from_files, from_log
from mqlake.store.recovery.recovery_index import UNUSED, IndexRecovery, KeptIndex
from mqlake.store.recovery.recovery_queues import Judges, KeptQueues, QueueBegin, QueueRecovery
from mqlake.store.settings import StoreSettings

Files = Mapping[QueueKind, QueueBytes]


@dataclass(frozen=True)
class Facts:
    """What follows from a log and from the files beside it.

    Attributes:
        start: physical offset from which the log was read.
        walked: what is to be dispatched, and where the log ends.
        index: the part of the index that stays.
        queues: the part of each queue that stays.
        incarnations: which records of deleted topics are dead.
        is_broken: whether queues lack entries of records before `start`, so that `walked` and
            `queues` are those of the whole log.
        odd_files: paths of queue files that were read and differ in size from the others.
    """

    start: int
    walked: Walked
    index: KeptIndex
    queues: KeptQueues
    incarnations: Incarnations
    is_broken: bool
    odd_files: frozenset[str]


def derive(
    found: StoreContents,
    directory: Directory,
    log: CommitLog,
    settings: StoreSettings,
    progress: Progress | None,
    *,
    owns_log: bool,
) -> Facts:
    """Return what follows from a log; nothing is changed.

    Args:
        log: the log of the directory.
        progress: called at intervals with the progress.
        owns_log: as for `find`.

    Raises:
        StoreError: a file cannot be read.
    """
    # If the log was lost at the resume point, its later files are removed: nothing follows from
    # them.
    log = CommitLog(directory, ()) if found.is_log_lost else log
    with ExitStack() as opened:
        files: dict[QueueKind, QueueBytes] = {}
        for kind, size in found.queue_file_sizes.items():
            files[kind] = QueueBytes(directory, size, kind)
            opened.callback(files[kind].close)
        return _LogAnalysis(found, directory, log, settings, progress, owns_log).facts(files)


class _LogAnalysis:
    def __init__(
        self,
        found: StoreContents,
        directory: Directory,
        log: CommitLog,
        settings: StoreSettings,
        progress: Progress | None,
        owns_log: bool,
    ) -> None:
        self._found, self._directory, self._log = found, directory, log
        self._settings, self._progress, self._owns_log = settings, progress, owns_log
        self._incarnations = found.incarnations.table

    def facts(self, files: Files) -> Facts:
        """Return what follows from the log.

        Args:
            files: of the queues, by their kind.
        """
        found, point = self._found, self._found.point
        lacks_files = found.is_clean and self._lacks_files(files)
        index = self._index()
        start = min(self._start(files), index.start.first)
        self._learn_from_files(files, start)
        walked = self._walk_living(files, start, lambda walk: walk.to_first_fault(start))
        kept = point.position if point else start
        judged = self._judge(files, start, kept).kept(found.queues, walked.firsts)
        lacks_ends = point is not None and judged.ends < point.queue_ends
        is_distrusted = found.checkpoint.distrusts_queues
        is_broken = is_distrusted or lacks_files or judged.is_broken or lacks_ends
        if is_broken or self._lacks_begins(judged.begins_late):
            is_broken, end, fault = True, walked.end, walked.fault
            walked = self._walk_living(
                files, self._log.min_offset, lambda walk: walk.across_faults(end, fault)
            )
            queues = tuple(queue.files for queue in judged.queues)
            dead = judged.dead
            judged = self._judge(files, self._log.min_offset).kept(queues, walked.firsts)
            judged = judged._replace(dead=(*dead, *judged.dead))
        odd = frozenset(path for each in files.values() for path in each.odd)
        return Facts(
            start=start,
            walked=walked,
            index=index,
            queues=judged,
            incarnations=self._incarnations,
            is_broken=is_broken,
            odd_files=odd,
        )

    # Incarnations

    def _learn_from_files(self, files: Files, start: int) -> None:
        """Complete the table of incarnations, if it may lack deletions.

        It may lack some if it was lost, or if another program has written the checkpoint.

        Args:
            start: physical offset before which everything is in the queues.
        """
        found = self._found
        if found.incarnations.is_whole and found.point is not None:
            return
        self._incarnations = from_files(
            self._incarnations,
            self._directory,
            found.queues,
            self._judge(files, self._log.limit),
            self._log.min_offset,
            start,
        )

    def _walk_living(self, files: Files, start: int, run: Callable[[LogWalk], Walked]) -> Walked:
        """Walk a part of the log, once more if topics begin again in it: some records are dead.

        Args:
            start: physical offset at which that part begins.
            run: walks it.
        """
        walked = run(self._walk())
        judges = self._judge(files, start)
        before = {
            (queue.topic, queue.queue_id): ends
            for queue in self._found.queues
            if walked.firsts.get((queue.topic, queue.queue_id)) == 0
            and (ends := judges.ends(queue)) is not None
        }
        topics = walked.restarted.union(topic for topic, _ in before)
        if not topics:
            return walked
        others = (queue for queue in self._found.queues if queue.topic in topics)
        before |= {
            (queue.topic, queue.queue_id): ends
            for queue in others
            if (ends := judges.ends(queue)) is not None
        }
        ended = from_log(
            self._batches(walked.stretches),
            topics,
            self._incarnations,
            before,
            self._found.batch_topics,
        )
        ended = {name: at for name, at in ended.items() if at > self._incarnations.before(name)}
        if not ended:
            return walked
        self._incarnations = self._incarnations.derived(ended)
        return run(self._walk())

    def _batches(self, stretches: Iterable[Stretch]) -> Iterator[Batch]:
        for stretch in stretches:
            yield from self._walk().batches(stretch.start, stretch.end)

    def _lacks_begins(self, begins: Collection[QueueBegin]) -> bool:
        """Return whether the log has records of queues before the first ones in their files.

        Retention removes the first files of a queue after those of the log.
        """
        if not begins:
            return False
        end = max(begin.physical_offset for begin in begins)
        firsts = self._walk().across_faults(end, Fault.GOOD).firsts
        return any(
            firsts.get(begin.queue, begin.queue_offset) < begin.queue_offset for begin in begins
        )

    def _judge(self, files: Files, start: int, kept: int | None = None) -> Judges:
        return Judges(
            {
                SIMPLE: QueueRecovery(files[SIMPLE], self._log, start, self._incarnations, kept),
                BATCH: BatchQueueRecovery(files[BATCH], self._log, start, self._incarnations, kept),
            },
            self._found.batch_topics,
        )

    def _lacks_files(self, files: Files) -> bool:
        """Return whether queues of a store that stopped cleanly have fewer entries than at the
        checkpoint.

        After a crash, retention may have removed their first files since. Files whose removal is
        not durable yet may reappear after a power loss, so the last ones are missed here, too.
        """
        point, queues = self._found.point, self._found.queues
        if point is None:
            return False
        if sum(queue.first for queue in queues) > point.queue_starts:
            return True
        return sum(files[queue.kind].written_end(queue) for queue in queues) < point.queue_ends

    def _start(self, files: Files) -> int:
        """Return the start of a record before which everything is in the queues."""
        found = self._found
        if found.point is not None:
            return found.point.position
        if not found.is_clean:
            return recovery_start(self._log, found.checkpoint.fields, found.dialect)
        # The greatest physical offset that the last entry of a queue correctly names.
        judges = self._judge(files, self._log.limit)
        offsets = (judges.last_offset(queue) for queue in found.queues)
        newest = max((offset for offset in offsets if offset is not None), default=None)
        return last_written_start(self._log) if newest is None else newest

    def _index(self) -> KeptIndex:
        found = self._found
        if not self._settings.message_index_enable:
            return UNUSED
        index = IndexRecovery(self._directory, found.index_names, self._log.min_offset)
        return index.kept(found.point, found.checkpoint.fields, is_clean=found.is_clean)

    def _walk(self) -> LogWalk:
        found, settings = self._found, self._settings
        steps = LogSteps(
            self._log,
            parse_delay_levels(settings.message_delay_level),
            index_tags=found.dialect is Dialect.V5_5,
            across_gaps=found.crosses_gaps,
            rule=self._rule(),
            is_arriving=not self._owns_log,
        )
        return LogWalk(self._log, steps, self._incarnations, self._progress)

    def _rule(self) -> RecordRule | None:
        """Return the requirements on records beyond RocketMQ's check."""
        if self._settings.force_verify_prop_crc:
            return ForcedRule()
        part = self._found.checksummed
        return None if part is None else ChecksumRule(part)
