"""Remove expired files of a live store, and decide whether it has room for messages.

Upstream: `DefaultMessageStore.CleanCommitLogService`, `ConsumeQueueStore.CleanConsumeQueueService`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from typing import Protocol

from mqlake.errors import DiskError
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.live_settings import Current
from mqlake.store.log.cut_off import remove_expired
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.log.pending_sync import PendingSync
from mqlake.store.log.segments import DIRECTORY
from mqlake.store.retention.plan import (
    Moment,
    SegmentFile,
    is_time,
    not_writable,
    plan_log,
)
from mqlake.store.services import Service
from mqlake.store.settings import StoreSettings

_HOUR = 3_600_000


class Trimmed(Protocol):
    """Files that point into the log: `OwnedQueues`, `OwnedIndex`."""

    def trim(self, min_physical_offset: int) -> int:
        """Remove the files that point only before a physical offset; the last one stays."""
        ...


class Checkpointed(Protocol):
    """What determines where the next start reads the log: `CheckpointFile`."""

    @property
    def position(self) -> int:
        """Physical offset before which everything derived from the log is durable."""
        ...


class Retention:
    """The retention of one live store. For the store's thread.

    The space of a removed file is freed once its last reader has closed it.

    Attributes:
        not_writable: why the store accepts no messages, None if the disk has room.
        warnings: the warnings of the last check of the disk, one line each.

    Args:
        queues, index, light: trimmed after the log.
        checkpoint: what a start after a crash would read is kept.
        zone: the time zone of `deleteWhen`; by default, this machine's.
    """

    def __init__(
        self,
        *,
        directory: OwnedDirectory,
        log: OwnedCommitLog,
        queues: Trimmed,
        index: Trimmed | None,
        light: Trimmed | None = None,
        checkpoint: Checkpointed,
        settings: Current[StoreSettings],
        clock: Clock,
        zone: tzinfo | None = None,
    ) -> None:
        self._directory, self._log, self._checkpoint = directory, log, checkpoint
        self._queues, self._derived = (
            queues,
            [each for each in (queues, index, light) if each is not None],
        )
        self._settings, self._clock, self._zone = settings, clock, zone
        self._waiting = 0
        self._is_asked = self._was_asked = False
        self._start, self._trimmed_to = log.min_offset, -1
        self.not_writable: str | None = None
        self.warnings: list[str] = []
        self._held: Callable[[], int] | None = None
        self._trimmed: Callable[[], object] = lambda: None

    def on_trim(self, trimmed: Callable[[], object]) -> None:
        """Call a function after files of the log were removed, or of what points into it."""
        self._trimmed = trimmed

    def services(self) -> list[Service]:
        """Return services that check the disk, and that remove files one by one, at their
        intervals.

        Deleting never delays the check of the disk, or the accepting of messages.
        """
        settings = self._settings
        return [
            Service(lambda: settings.now.clean_resource_interval, self.check, "retention"),
            Service(
                lambda: settings.now.delete_commit_log_files_interval,
                self.remove_next,
                "fileRemoval",
            ),
        ]

    def hold(self, held: Callable[[], int]) -> None:
        """Keep the log from the physical offset on that a function returns: somebody needs it."""
        self._held = held

    def clean(self) -> None:
        """Remove expired files at the next check, at any hour."""
        self._is_asked = True

    def clean_queues(self) -> None:
        """Remove files of queues that point only before the log's start.

        Raises:
            DiskError: the system refused an operation.
        """
        self._queues.trim(self._start)
        self._trimmed()

    def check(self) -> None:
        """Check the disk; decide whether messages are accepted, and which files are removed next.

        Earlier decisions that were not carried out are made again. If the disk cannot be checked,
        nothing changes.
        """
        try:
            usage = self._directory.usage()
            files = self._files()
        except DiskError as error:
            self.warnings = [str(error)]
            return
        settings = self._settings.now
        self.not_writable = not_writable(settings, usage)
        now = self._clock.milliseconds()
        is_due = self._is_asked or is_time(settings, now, self._zone)
        needed = min(self._log.flushed, self._checkpoint.position)
        if self._held is not None:
            needed = min(needed, self._held())
        plan = plan_log(settings, Moment(now, is_due, usage), files, needed)
        self._waiting = min(len(plan.removals), settings.delete_file_batch_max)
        self._was_asked = self._is_asked
        self._is_asked = self._is_asked and self._waiting < len(plan.removals)
        self.warnings = plan.warnings
        self._trim()
        self._remove_cut_off(now)

    def _remove_cut_off(self, now: int) -> None:
        """Remove what recovery cut off the log, and kept, once it is as old as expired files."""
        try:
            remove_expired(self._directory, now - self._settings.now.file_reserved_time * _HOUR)
        except DiskError as error:
            self.warnings = [*self.warnings, str(error)]

    def remove_next(self) -> PendingSync | None:
        """Remove the next expired file of the log, if there is one.

        What points into it is removed once that is durable: the returned job has run. Until then no
        other file is removed: a power loss must leave no gap. If the disk refused a sync, it is
        tried again.
        """
        if self._start == self._log.min_offset and not self._remove_file():
            return None
        start = self._log.min_offset

        def done() -> None:
            self._start = start
            self._trim()

        return PendingSync(self._directory, directories=[DIRECTORY], done=done)

    def _remove_file(self) -> bool:
        if not self._waiting:
            return False
        try:
            self._log.remove_first()
            self._trimmed()
        except DiskError as error:
            self._waiting, self.warnings = 0, [*self.warnings, str(error)]
            # What `clean` asked for is planned again, whatever the hour is then.
            self._is_asked = self._is_asked or self._was_asked
            return False
        self._waiting -= 1
        return True

    def _files(self) -> list[SegmentFile]:
        return [
            SegmentFile(
                segment.path,
                segment.base,
                segment.end - segment.base,
                self._directory.modified(segment.path),
            )
            for segment in self._log.segments
        ]

    def _trim(self) -> None:
        """Remove what points before the log's start, including what a crash between the two
        left.
        """
        start = self._start
        if start <= self._trimmed_to:
            return
        try:
            for derived in self._derived:
                derived.trim(start)
            self._trimmed_to = start
            self._trimmed()
        except DiskError as error:
            self.warnings = [*self.warnings, str(error)]
