"""The role of a live store: put messages as a master, or receive those of one as a slave.

Upstream: `DefaultMessageStore.appendToCommitLog`, `ReplicasManager.changeToMaster`.
"""

from __future__ import annotations

import logging
from collections.abc import Generator

from mqlake.errors import StoreError, SyncError
from mqlake.formats.checkpoint import STILL_OPEN, Checksummed
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.formats.topic_names import LIGHT_PREFIX
from mqlake.storage.fork_guard import ForkGuard
from mqlake.store.config_store import ConfigStore
from mqlake.store.core.durability import Durability
from mqlake.store.core.health import Health
from mqlake.store.core.live_files import LiveFiles
from mqlake.store.core.ticks import LONGEST_TURN, Ticks
from mqlake.store.core.topic_removal import TopicRemoval
from mqlake.store.live_settings import Current
from mqlake.store.replication.copies import Copies
from mqlake.store.replication.received_log import ReceivedLog
from mqlake.store.services import Job
from mqlake.store.settings import StoreSettings

_log = logging.getLogger(__name__)


class Role:
    """What a store does as a master or a slave, and the change between both. For its thread.

    Args:
        where: the directory, for log lines.

    Attributes:
        received: the bytes of a master's log, if this store belongs to a slave.
    """

    def __init__(
        self,
        files: LiveFiles,
        settings: Current[StoreSettings],
        config: ConfigStore,
        copies: Copies,
        *,
        durability: Durability,
        removal: TopicRemoval,
        ticks: Ticks,
        health: Health,
        fork_guard: ForkGuard,
        where: str,
    ) -> None:
        self._log, self._offsets, self._dispatcher = files.log, files.offsets, files.dispatcher
        self._checkpoint, self._settings, self._config = files.checkpoint, settings, config
        self._copies, self._durability, self._removal = copies, durability, removal
        self._ticks, self._health = ticks, health
        self._fork_guard, self._where = fork_guard, where
        self._light = files.light
        self.received = ReceivedLog(files.log)
        self._dispatcher.set_restarts_expected(are_expected=settings.now.is_slave)

    def restarted(self, topic: str, before: int) -> None:
        """End the incarnation of a topic that its master has deleted and created again."""
        ended = self._removal.end(topic, before)
        _log.warning(
            "topic %s begins again: its messages before physical offset %d, in %d queues, are"
            " removed: the master has deleted and created the topic again",
            topic,
            before,
            ended,
        )

    # A slave

    def receive(self, data: bytes | memoryview) -> None:
        """Append bytes of the master's log that begin at `received.expected`.

        Raises:
            StoreError: the bytes are not records, or this store accepts nothing now.
            DiskError: there is no room on the disk. What `received` holds is dropped, as after a
                StoreError.
        """
        self._fork_guard.check()
        not_writable = self._health.not_writable
        if not_writable is not None or self._health.is_shut_down:
            raise StoreError(f"the store is read-only: {not_writable or 'it is shut down'}")
        try:
            self.received.take(data)
        except BaseException:
            self.received.drop()
            raise

    def begin_at(self, physical_offset: int) -> None:
        """Let an empty log begin where a master's first file begins.

        Raises:
            StoreError: the log is not empty.
            DiskError: the disk failed.
        """
        log = self._log
        if log.segments and log.end > log.min_offset:
            raise StoreError(
                f"the log is not empty: it ends at {log.end}; use a new store directory"
            )
        try:
            log.begin_at(physical_offset)
        except SyncError as error:
            self._health.fail(error)
            raise
        self._dispatcher.skip_to(physical_offset)
        # Without it, the next start would consider the first files lost.
        self._durability.checkpoint()

    def following(self) -> Generator[Job]:
        """Prepare for the records of a master, which may have no checksums.

        Yields:
            The waits for the disk; to be run, in any thread, before it continues.
        """
        yield from self._prepared(None, expects_restarts=True)

    def _prepared(
        self, checksummed: Checksummed | None, *, expects_restarts: bool
    ) -> Generator[Job]:
        """Expect the records of another role; if the disk refuses the checkpoint, those of the old
        role again.

        Args:
            checksummed: which records have checksums from now on.
            expects_restarts: as in the dispatcher.
        """
        checkpoint, dispatcher = self._checkpoint, self._dispatcher
        before = checkpoint.checksummed, dispatcher.expects_restarts
        checkpoint.certify(checksummed)
        dispatcher.set_restarts_expected(are_expected=expects_restarts)
        try:
            yield self._durability.pending_checkpoint()
        except BaseException:
            checkpoint.certify(before[0])
            dispatcher.set_restarts_expected(are_expected=before[1])
            raise

    # A master

    def leading(self) -> Generator[Job | None]:
        """Prepare to put messages after those of a master.

        Yields:
            As `following`; None after each turn of dispatch, so that others are served.

        Raises:
            StoreError: received records cannot be dispatched, or the disk failed.
        """
        self.received.drop()
        yield self._log.unsynced()
        followed = self._copies.followed
        self._copies.release()
        try:
            yield from self._dispatch_received()
            yield from self.clamp_offsets()
            checksummed = self._checkpoint.checksummed
            if self._settings.now.enabled_append_prop_crc:
                checksummed = Checksummed(self._log.end, STILL_OPEN)
            yield from self._prepared(checksummed, expects_restarts=False)
        except BaseException:
            # A slave again: it shows no more than its master confirms, except what is dispatched.
            self._copies.follow(followed)
            raise

    def _dispatch_received(self) -> Generator[None]:
        """Dispatch all of the log; yield after each turn.

        Raises:
            StoreError: a record cannot be dispatched.
        """
        dispatcher, stalls = self._dispatcher, 0
        while dispatcher.position < self._log.end:
            before, entries = dispatcher.position, dispatcher.entries
            self._ticks.dispatch(LONGEST_TURN)
            is_stalled = (dispatcher.position, dispatcher.entries) == (before, entries)
            # The first turn at a record that needs a larger window only makes that. Records of
            # thousands of new queues take many turns.
            stalls = stalls + 1 if is_stalled else 0
            if self._health.dispatch_failure is not None or stalls > 1:
                raise self._health.dispatch_failure or StoreError(
                    f"nothing is dispatched from physical offset {before} on"
                )
            yield None

    def clamp_offsets(self) -> Generator[Job | None]:
        """Let no offset be past the end of its queue, durably: the log may be older than the
        tables.

        On a slave, which has its master's offsets, the queues may only lag.
        """

        def end_of(topic: str, queue_id: int) -> int | None:
            if topic in self._config.static_topics:
                return None
            if topic.startswith(LIGHT_PREFIX):
                return None if self._light is None else self._light.end_of(topic)
            return self._offsets.next(topic, queue_id)

        count = yield from self._config.consumer_offsets.clamp(end_of)
        delays = self._config.delay_offsets
        for level, offset in delays.items():
            if offset > (end := self._offsets.next(SCHEDULE_TOPIC, level - 1)):
                delays.set(level, end)
                count += 1
        if count:
            _log.warning(
                "%s: %d offsets of consumer groups and delay levels were past the end of their"
                " queues, and are moved to it: the log is older than config/, or lost its end",
                self._where,
                count,
            )
            # Once the queues are that long again, these offsets would look valid.
            for table in (self._config.consumer_offsets, delays):
                if (job := table.write()) is not None:
                    yield job
