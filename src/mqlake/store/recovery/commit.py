"""Commit a recovery: its last stage, the only one that changes the directory.

It may be interrupted at any moment: the resume point stays until the end, and nothing before it is
touched, so that the next start finds, derives and settles the same.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass

from mqlake.errors import StoreError
from mqlake.formats.record import FAULT_REASONS
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.config.config_files import DIRECTORY
from mqlake.store.dispatch.dispatcher import Dispatched, Dispatcher, Last
from mqlake.store.incarnations.table import OwnedIncarnations
from mqlake.store.index.owned_index import OwnedIndex
from mqlake.store.light.light_queues import LightQueues
from mqlake.store.log import cut_off
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.log.segments import CommitLog
from mqlake.store.queues.owned_batch_queue import OwnedBatchQueue
from mqlake.store.queues.owned_queue import OwnedQueue
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.queues.queue_kind import BATCH, SIMPLE
from mqlake.store.queues.queue_offsets import QueueOffsets
from mqlake.store.recovery.abort_mark import mark_open
from mqlake.store.recovery.checkpoint_file import CheckpointFile, reached
from mqlake.store.recovery.find import StoreContents
from mqlake.store.recovery.log_walk import Progress
from mqlake.store.recovery.plan import RecoveryPlan
from mqlake.store.recovery.queue_bytes import FoundQueue
from mqlake.store.recovery.recovery_light import recover_light
from mqlake.store.report import CutOffReport
from mqlake.store.settings import StoreSettings

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Committed:
    """The files derived from a log, complete up to its end and durable.

    Attributes:
        dispatched: how far the log is dispatched: to its end.
        cut_off: what was cut off the log although it has good records, and where it is kept.
        batch_topics: the topics with batch consume queues.
        crosses_gaps: whether the log continues after a missing file.
        incarnations: which records of deleted topics are dead.
        light: the light queues, None if the store derives none.
    """

    queues: OwnedQueues
    index: OwnedIndex
    light: LightQueues | None
    dispatched: Dispatched
    offsets: QueueOffsets
    checkpoint: CheckpointFile
    cut_off: tuple[CutOffReport, ...]
    batch_topics: frozenset[str]
    crosses_gaps: bool
    incarnations: OwnedIncarnations


class Commit:
    """Carry out the plan of one recovery.

    Args:
        log: the log of the directory.
        owned: the same log if it may be cut, None if another program writes it.
    """

    def __init__(
        self,
        *,
        plan: RecoveryPlan,
        found: StoreContents,
        directory: OwnedDirectory,
        log: CommitLog,
        owned: OwnedCommitLog | None,
        settings: StoreSettings,
        clock: Clock,
    ) -> None:
        self._plan, self._found, self._directory = plan, found, directory
        self._log, self._owned = log, owned
        self._settings, self._clock = settings, clock
        checkpoint = found.checkpoint._replace(checksummed=found.checksummed)
        self._checkpoint = CheckpointFile(directory, checkpoint, found.dialect)
        sizes, has_batches = found.queue_file_sizes, found.batch_topics.__contains__
        self._queues = OwnedQueues(directory, sizes[SIMPLE], sizes[BATCH], has_batches)
        self._index = OwnedIndex(
            directory,
            clock,
            settings.max_hash_slot_num,
            settings.max_index_num,
            is_used=settings.message_index_enable,
        )
        self._incarnations = OwnedIncarnations(directory, clock, found.incarnations)
        self._incarnations.adopt(plan.incarnations)
        self._dispatcher = self._make_dispatcher()

    def run(self, syncing: Future[None] | None, progress: Progress | None) -> Committed:
        """Change what the plan says; everything is durable when it returns.

        Args:
            syncing: the sync of the log that runs in another thread, if one does.
            progress: called at intervals with the progress.

        Raises:
            DiskError: the disk failed, or has no room.
        """
        plan, queues, index = self._plan, self._queues, self._index
        self._mark_open()
        self._keep_incarnations()
        self._keep_index()
        self._keep_queues()
        self._dispatch(progress)
        # Entries that were dispatched from the log must not reach the disk before the log.
        if syncing is not None:
            syncing.result()
        self._clear_queues()
        index.clear_behind()
        kept_aside = self._cut_log()
        queues.begin_at(self._log.min_offset)
        queues.files.sync()
        index.sync()
        light = self._recover_light()
        # This comes last: it refers to everything that was written above.
        self._checkpoint.certify(plan.checksummed)
        self._checkpoint.write(reached(self._dispatcher.done, queues, index))
        offsets = QueueOffsets()
        for queue in queues:
            offsets.set(queue.topic, queue.queue_id, queue.end)
        return Committed(
            queues=queues,
            index=index,
            light=light,
            dispatched=self._dispatcher.done,
            offsets=offsets,
            checkpoint=self._checkpoint,
            cut_off=kept_aside,
            batch_topics=self._found.batch_topics,
            crosses_gaps=self._found.crosses_gaps,
            incarnations=self._incarnations,
        )

    def _recover_light(self) -> LightQueues | None:
        point = None if self._plan.distrusts_queues else self._found.point
        return recover_light(
            directory=self._directory,
            settings=self._settings,
            log=self._log,
            incarnations=self._incarnations,
            position=-1 if point is None else point.position,
            end=self._plan.end,
            across_gaps=self._found.crosses_gaps,
        )

    def _make_dispatcher(self) -> Dispatcher:
        found, point = self._found, self._found.point
        done = Dispatched(self._plan.end)
        if point is not None:
            done = Dispatched(
                self._plan.end,
                Last(point.last_record, found.checkpoint.fields.physic_msg_timestamp),
                Last(point.last_queued, point.last_queued_timestamp),
            )
        return Dispatcher(
            self._log,
            self._queues,
            self._index,
            self._incarnations,
            dialect=found.dialect,
            message_delay_level=self._settings.message_delay_level,
            done=done,
            across_gaps=found.crosses_gaps,
        )

    def _mark_open(self) -> None:
        is_clean = self._found.is_clean
        if not is_clean:
            mark_open(self._directory)
        if self._plan.distrusts_queues:
            # This comes before the abort file exists: after a crash, missing queue files look as if
            # retention had removed them.
            self._checkpoint.distrust_queues()
        if is_clean:
            mark_open(self._directory)

    def _keep_incarnations(self) -> None:
        """Write which records are dead, before anything is changed because of it.

        Raises:
            DiskError: the disk failed.
        """
        table = self._incarnations
        if self._owned is not None and (count := table.clamp(self._plan.end)):
            _log.warning(
                "%s: %d topics and groups were deleted after the log's end, physical offset %d: the"
                " log is older than config/, or lost its end. All their messages in it are deleted",
                self._directory.describe(),
                count,
                self._plan.end,
            )
        if not self._found.incarnations.is_whole:
            table.complete()
        if (job := table.write()) is not None:
            job.complete()
        elif not self._found.is_clean:
            # The process may have been killed before the file's new name was durable.
            self._directory.sync_directory(DIRECTORY)

    def _keep_index(self) -> None:
        kept = self._plan.index
        if not self._index.is_used:
            return
        # The last file comes first: without room for its slots, nothing is lost.
        self._index.adopt(kept.names, kept.full, kept.last, kept.before, kept.full_until)
        if kept.distrust is not None:
            self._checkpoint.distrust_index(*kept.distrust)
        for name in kept.removed:
            self._index.remove(name)

    def _keep_queues(self) -> None:
        for path in sorted(self._plan.odd_files):
            self._queues.files.file(path)  # This sets its size.
        for files, bases in self._plan.removed.items():
            queue = self._places(files._replace(bases=bases), 0)
            for base in bases:
                queue.remove_file(base)
        for kept in self._plan.queues:
            self._places(kept.files, kept.end)
        for dead in self._plan.dead:
            self._queues.adopt_dead(*dead)
        for _ in self._queues.burial():
            pass

    def _places(self, files: FoundQueue, end: int) -> OwnedQueue:
        """Return a queue (of a batch consume queue, its units) up to its end."""
        if files.kind is BATCH:
            return self._queues.adopt_batches(*files[:3], end).places
        return self._queues.adopt(*files[:3], end)

    def _dispatch(self, progress: Progress | None) -> None:
        dispatcher, done = self._dispatcher, 0
        total = sum(stretch.end - stretch.start for stretch in self._plan.dispatch)
        for stretch in self._plan.dispatch:
            start, end = stretch.start, stretch.end
            for batch in stretch.batches():
                dispatcher.take(batch, *self._plan.index.start)
            dispatcher.skip_to(stretch.read_end)
            while dispatcher.position < end:
                # The first step at a record that needs a larger window only creates the window.
                steps = (dispatcher.step(end, *self._plan.index.start) for _ in range(2))
                if not any(steps):
                    where = f"{self._directory.describe()}: physical offset {dispatcher.position}"
                    raise StoreError(
                        f"{where}: the log changed while it was recovered; open the store again"
                    )
                if progress is not None:
                    progress(total + done + dispatcher.position - start, 2 * total)
            done += end - start
        dispatcher.skip_to(self._plan.end)

    def _clear_queues(self) -> None:
        """Zero everything after the end of each queue."""
        for kept in self._plan.queues:
            found = self._queues.queue(kept.files.topic, kept.files.queue_id)
            queue = found.places if isinstance(found, OwnedBatchQueue) else found
            is_longer = kept.written > queue.end
            if is_longer or len(queue.bases) > 1:
                queue.end_at(queue.end)
            if queue.bases and (is_longer or kept.has_more):
                self._queues.files.distrust_names(queue.path)

    def _cut_log(self) -> tuple[CutOffReport, ...]:
        """Cut the log, keeping a copy of the good records; return what is kept."""
        plan, settings = self._plan, self._settings
        if self._owned is None:
            return ()
        now = self._clock.milliseconds()
        reports = cut_off.keep(self._directory, self._log, plan.end, now)
        for part in reports:
            _log.warning(
                "%s: the commit log is cut off at physical offset %d: %s;"
                " %d good records after it are kept in %s for fileReservedTime, %d hours",
                self._directory.describe(),
                plan.end,
                FAULT_REASONS[plan.fault],
                part.records,
                part.path,
                settings.file_reserved_time,
            )
        self._owned.recover_to(plan.end, plan.dirty_from)
        return tuple(reports)
