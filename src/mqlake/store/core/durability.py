"""Make a live store durable: syncs of the log, checkpoints, and when they are due.

Upstream: `FlushRealTimeService`, `FlushConsumeQueueService`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from mqlake.errors import SyncError
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.storage.clock import Clock
from mqlake.storage.fork_guard import ForkGuard
from mqlake.store.config.config_file import ConfigWrite
from mqlake.store.core.health import Health
from mqlake.store.core.live_files import LiveFiles
from mqlake.store.core.ticks import Ticks
from mqlake.store.live_settings import Current
from mqlake.store.log.pending_sync import PendingSync
from mqlake.store.recovery.checkpoint_file import CheckpointFile, Reached, reached
from mqlake.store.services import Job, Service
from mqlake.store.settings import FlushDiskType, StoreSettings

# Milliseconds between checks for removed files of the store.
LINKS_INTERVAL = 1000

_PAGE = 4096
_MOST_TO_READ = 64 << 20
"""Bytes of the log after which a checkpoint is due: so much more does a recovery read."""


class Durability:
    """The syncs and checkpoints of one store. For the store's thread.

    Attributes:
        flush_service: syncs the log periodically.
    """

    def __init__(
        self,
        files: LiveFiles,
        settings: Current[StoreSettings],
        clock: Clock,
        health: Health,
        ticks: Ticks,
        fork_guard: ForkGuard,
    ) -> None:
        self._log, self._queues, self._index = files.log, files.queues, files.index
        self._light = files.light
        self._dispatcher, self._incarnations = files.dispatcher, files.incarnations
        self._checkpoint = files.checkpoint
        self._settings, self._clock = settings, clock
        self._health, self._ticks, self._fork_guard = health, ticks, fork_guard
        self._last_flush = self._last_checkpoint = clock.monotonic()
        self._entries_in_checkpoint = self._dispatcher.entries
        self._end_in_checkpoint = self._log.end
        self.flush_service = Service(
            lambda: settings.now.flush_interval_commit_log, self._flush, "flush"
        )

    def sync_log(self) -> None:
        """Return once every message is durable and dispatched.

        Raises:
            SyncError: the disk failed; the store accepts no more messages.
            DiskError: the disk refused an operation; the same call may succeed later.
        """
        self.complete(self._log.unsynced())
        self._ticks.dispatch()

    def checkpoint(self) -> None:
        """Return once all files, and a checkpoint that records this, are durable.

        Raises:
            DiskError: as for `sync_log`.
        """
        self.complete(self.pending_checkpoint())

    def complete(self, job: Job) -> None:
        """Run a job in this thread; a failed sync is a failure of the store.

        Raises:
            StoreError: the store failed before, or this process is a child, forked since the store
                was opened.
            DiskError: as for `sync_log`.
        """
        self._fork_guard.check()
        if self._health.failure is not None:
            raise self._health.failure
        try:
            job.run()
        except SyncError as error:
            self._health.fail(error)
            raise
        job.done()

    def pending_checkpoint(self) -> PendingCheckpoint:
        """Return a job that makes all files durable, and a checkpoint that records this."""
        now, entries, end = self._clock.monotonic(), self._dispatcher.entries, self._log.end

        def note() -> None:
            self._last_checkpoint = now
            self._entries_in_checkpoint, self._end_in_checkpoint = entries, end

        parts = [
            self._log.unsynced(),
            self._queues.files.pending_sync(),
            self._index.pending_sync(),
        ]
        if self._light is not None:
            parts.append(self._light.pending_sync())
        ended, upto = self._incarnations.write(), self._reached()
        turn = self._checkpoint.next_turn()
        return PendingCheckpoint(parts, ended, self._checkpoint, upto, turn, note)

    def expect_checkpoint(self) -> None:
        """Let a checkpoint be due at the next interval of its service."""
        self._last_checkpoint = -inf

    def mark_clean(self) -> None:
        """Write the checkpoint of a clean stop: the last one was written, and nothing since.

        Raises:
            DiskError: the disk failed.
        """
        self._checkpoint.write(self._reached(), is_clean_stop=True)

    def _reached(self) -> Reached:
        return reached(self._dispatcher.done, self._queues, self._index)

    # Services

    def services(self) -> list[Service]:
        """Return the services that sync files, and check that they still exist."""
        settings = self._settings
        return [
            self.flush_service,
            Service(
                lambda: settings.now.flush_interval_consume_queue,
                self._derived_flush,
                "checkpoint",
            ),
            Service(LINKS_INTERVAL, self._check_links, "links"),
        ]

    def _flush(self) -> Job | None:
        now, unflushed = self._clock.monotonic(), self._log.end - self._log.flushed
        settings = self._settings.now
        least = settings.flush_commit_log_least_pages * _PAGE
        is_late = (now - self._last_flush) * 1000 >= settings.flush_commit_log_thorough_interval
        # Nobody sees what the store itself has put before it is durable.
        is_sync = settings.flush_disk_type is FlushDiskType.SYNC_FLUSH
        is_due = unflushed >= least or is_late or is_sync
        if self._health.failure or not unflushed or not is_due:
            return None
        self._last_flush = now
        return self._log.unsynced()

    def _derived_flush(self) -> Job | None:
        """Sync derived files once it is worth it, or they have waited long.

        Each file costs a sync, however little is new in it: a thousand queues with a few entries
        each wait until a recovery would have to read much.
        """
        if self._health.failure or not (self._is_worth_a_checkpoint() or self._is_late()):
            return None
        return self.pending_checkpoint()

    def _is_worth_a_checkpoint(self) -> bool:
        new = (self._dispatcher.entries - self._entries_in_checkpoint) * ENTRY_SIZE
        least = self._settings.now.flush_consume_queue_least_pages * _PAGE
        is_much = self._log.end - self._end_in_checkpoint >= _MOST_TO_READ
        return new >= least * max(1, self._queues.files.unsynced) or is_much

    def _is_late(self) -> bool:
        waited = (self._clock.monotonic() - self._last_checkpoint) * 1000
        return waited >= self._settings.now.flush_consume_queue_thorough_interval

    def _check_links(self) -> None:
        """Raise an error if files in use were removed: messages that are put then would be lost."""
        try:
            self._log.files.check_linked(self._log.segments)
            self._queues.files.check_linked()
            self._index.check_linked()
            if self._light is not None:
                self._light.check_linked()
        except SyncError as error:
            self._health.fail(error)


@dataclass(frozen=True)
class PendingCheckpoint:
    """All files of a store to sync, and the checkpoint that then records it."""

    parts: Sequence[PendingSync]
    ended: ConfigWrite | None
    file: CheckpointFile
    reached: Reached
    turn: int
    note: Callable[[], None]

    def run(self) -> None:
        """Wait for the disk, in any thread.

        Raises:
            DiskError: the disk failed; the checkpoint is as it was, or damaged.
        """
        for part in self.parts:
            part.run()
        if self.ended is not None:
            # Without it, the next start would not know that records before the checkpoint are dead.
            self.ended.run()
            if self.ended.failure is not None:
                raise self.ended.failure
        self.file.write(self.reached, self.turn)

    def done(self) -> None:
        """Note in the store's thread that everything is durable."""
        for part in self.parts:
            part.done()
        if self.ended is not None:
            self.ended.done()
        self.note()
