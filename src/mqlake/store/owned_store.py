"""Own a store directory: append, dispatch, make durable, read (docs/live-store.md).

The core of the live store: synchronous, for one thread, without a timer of its own.
`message_store` (asyncio) and `blocking` (threads) put time around it.
Upstream: `DefaultMessageStore`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Self

from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.drafts import Drafts
from mqlake.errors import StoreError, SyncError
from mqlake.formats.checkpoint import STILL_OPEN, Checksummed
from mqlake.formats.consume_queue import ENTRY_SIZE, SCHEDULE_TOPIC
from mqlake.formats.topic_names import WAITING
from mqlake.storage.clock import Clock, SystemClock
from mqlake.storage.fork_guard import ForkGuard
from mqlake.storage.owner_lock import LOCK_NAME
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.append.appender import Appender
from mqlake.store.append.checks import Refusal
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutResult
from mqlake.store.append.sent_puts import Placed
from mqlake.store.config.config_file import ConfigWrite
from mqlake.store.config.config_store import ConfigStore
from mqlake.store.delivery.redelivery import Redelivery
from mqlake.store.delivery.schedule import Schedule, any_may_be_delayed
from mqlake.store.delivery.scheduled import ScheduledMessages
from mqlake.store.delivery.timer_files import TimerFiles
from mqlake.store.delivery.timers import TimerMessages
from mqlake.store.delivery.transactions import Transactions
from mqlake.store.live_settings import Current, current
from mqlake.store.pending_sync import PendingSync
from mqlake.store.reads.live_reads import Live, LiveReads
from mqlake.store.recovery.abort_mark import mark_closed
from mqlake.store.recovery.checkpoint_file import CheckpointFile, Reached, reached
from mqlake.store.recovery.recovery import Progress, Recovered, recover
from mqlake.store.replication.copies import Copies
from mqlake.store.replication.received_log import ReceivedLog
from mqlake.store.retention.retention import Retention
from mqlake.store.services import Job, Service, Services, Started
from mqlake.store.settings import FlushDiskType, StoreSettings
from mqlake.store.watermarks import Watermarks

LONGEST_TURN = 0.02
"""Seconds after which a tick leaves the rest to the next one, so that others are served: the first
messages to thousands of queues create thousands of files.
"""

# Milliseconds after which a put dispatches the messages since the last dispatch by itself: under
# load, a longer tick costs less for each message.
_LONGEST_TICK = 4

# Milliseconds between checks for removed files of the store.
_LINKS_INTERVAL = 1000

_BURIAL_INTERVAL, _BURIAL_TURN = 50, 0.002
"""Milliseconds between turns in which files of deleted topics are removed, and seconds of each."""

_PRUNE_INTERVAL = 60_000
"""Milliseconds between checks for incarnations that may be forgotten."""

_PAGE = 4096

_log = logging.getLogger(__name__)


class OwnedStore:
    """A store directory that this process owns and writes. For one thread.

    Attributes:
        directory: the directory of the store.
        settings: the current settings.
        log, queues, index: the files that are written.
        watermarks: how far the log is written, confirmed and dispatched.
        copies: which part of the log slaves have.
        received: appends the bytes of a master's log, if this store belongs to a slave.
        offsets: the next offset of each queue.
        dispatcher: derives queues and index from the log.
        config: topics, groups, offsets.
        retention: removes expired files.
        reads: answers questions.
        scheduled: delivers delayed messages.
        timers: delivers messages at their own delivery times.
        transactions: prepares and commits messages, and checks transactions.
        redelivery: puts accepted messages again, and counts those that it had to set aside.
        recovered: what recovery found and repaired.
        services: the periodic work.
        last_tick: the time of the last dispatch, milliseconds.
        answer_if_busy: `Appender.answer_if_busy`.
        fork_guard: refuses every change of a file in a forked child.
        failure: why nothing is accepted until the store is opened again: the disk failed to keep
            accepted data, or a task of the store has ended.
        flush_service: syncs the log periodically.
        not_writable: why messages are refused now; None if they are accepted.
        dispatch_failures: the number of failed ticks.
    """

    def __init__(
        self,
        directory: OwnedDirectory,
        settings: Current[StoreSettings],
        clock: Clock,
        found: Recovered,
        config: ConfigStore,
        timer_files: TimerFiles,
    ) -> None:
        self.directory, self._settings, self.clock = directory, settings, clock
        self.recovered = found.report
        self.log, self.queues, self.index = found.log, found.queues, found.index
        self.offsets, self.dispatcher = found.offsets, found.dispatcher
        self.config = config
        self.queues.has_batches = self._has_batches
        self._unlisted_batches = found.batch_topics
        self.retention = Retention(
            directory, self.log, self.queues, self.index, found.checkpoint, settings, clock
        )
        self.failure: StoreError | None = None
        self.copies = Copies(settings, lambda: self.log.end)
        self.received = ReceivedLog(self.log)
        self.watermarks = Watermarks(
            self.log, self.dispatcher, settings.now.flush_disk_type, self.copies
        )
        self.reads = LiveReads(
            Live(
                self.log,
                self.queues,
                self.index,
                self.dispatcher,
                settings,
                self.watermarks,
                self.tick,
                found.report.dialect,
                config.incarnations,
            )
        )
        self.dispatcher.arrived = self._arrived
        self.dispatcher.on_restart = self._restarted if settings.now.is_slave else None
        self._appender = Appender(self.log, self.offsets, settings, clock, self._has_batches)
        self._append, self.answer_if_busy = self._appender.put, self._appender.answer_if_busy
        self._put_plain = self._appender.plain.put
        self._put_plain_fields = self._appender.plain.put_fields
        self._put_sent = self._appender.sent.put
        self._schedule = Schedule(settings, clock)
        self.redelivery = again = Redelivery(
            self._appender.put_again, self._appender.put_again_without_crc, self.config
        )
        self.scheduled = ScheduledMessages(
            self.log, self.queues, self.config.delay_offsets, again, settings.now, clock
        )
        self.timers = TimerMessages(timer_files, self.log, self.queues, again, settings, clock)
        self.transactions = Transactions(
            self.log,
            self.queues,
            self.config,
            self._append,
            again,
            self.put_again,
            settings,
            clock,
        )
        self._checkpoint = found.checkpoint
        self._dispatch_failure: StoreError | None = None
        self.dispatch_failures = 0
        self.not_writable: str | None = None
        self._is_shut_down = False
        self._last_flush = self._last_checkpoint = clock.monotonic()
        self.last_tick = clock.milliseconds()
        self._entries_in_checkpoint = self.dispatcher.entries
        self._held = ExitStack()
        self.flush_service = Service(
            lambda: settings.now.flush_interval_commit_log, self._flush, "flush"
        )
        self.services = Services(clock, self._services())
        self.fork_guard = ForkGuard(directory.describe(), self._enter_child)

    def _has_batches(self, topic: str) -> bool:
        """Return whether a topic's queues are batch consume queues.

        If the topic has no settings, its files told it when the store was opened.
        """
        known = self.config.topics.get(topic)
        return topic in self._unlisted_batches if known is None else known.has_batch_queues

    def _enter_child(self) -> None:
        """Do nothing more in a forked child: the parent continues to write these files."""
        self._appender.shut_down(self.fork_guard.reason)
        self.services = Services(self.clock, [])

    @classmethod
    def open(
        cls,
        directory: OwnedDirectory,
        settings: StoreSettings | Current[StoreSettings] | None = None,
        clock: Clock | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Take ownership of the directory, recover its contents, and be ready for messages.

        Args:
            settings: fixed settings, or settings that their owner may replace.

        Raises:
            StoreError: another process owns the directory, or its contents cannot be opened.
            DiskError: the disk failed.
        """
        settings, clock = current(settings or StoreSettings()), clock or SystemClock()
        with ExitStack() as held:
            held.enter_context(directory.own(LOCK_NAME))
            found = recover(directory, settings.now, clock, progress)
            config = ConfigStore.load(directory, settings, clock, found.incarnations)
            timer_files = TimerFiles.open(directory, settings.now)
            store = cls(directory, settings, clock, found, config, timer_files)
            store._held = held.pop_all()
        if not settings.now.is_slave:
            for job in store._clamp_offsets():
                if job is not None:
                    job.run()
                    job.done()
        return store

    def _clamp_offsets(self) -> Generator[Job | None]:
        """Let no offset be past the end of its queue, durably: the log may be older than the
        tables.

        On a slave, which has its master's offsets, the queues may only lag.
        """

        def end_of(topic: str, queue_id: int) -> int | None:
            if topic in self.config.static_topics:
                return None
            return self.offsets.next(topic, queue_id)

        count = yield from self.config.consumer_offsets.clamp(end_of)
        delays = self.config.delay_offsets
        for level, offset in delays.items():
            if offset > (end := self.offsets.next(SCHEDULE_TOPIC, level - 1)):
                delays.set(level, end)
                count += 1
        if count:
            _log.warning(
                "%s: %d offsets of consumer groups and delay levels were past the end of their"
                " queues, and are moved to it: the log is older than config/, or lost its end",
                self.directory.describe(),
                count,
            )
            # Once the queues are as long as that again, nobody could tell any more.
            for table in (self.config.consumer_offsets, delays):
                if (job := table.write()) is not None:
                    yield job

    @property
    def settings(self) -> StoreSettings:
        """Return the current settings."""
        return self._settings.now

    # Put

    def put(self, message: Message) -> PutResult:
        """Append a message; it may be acknowledged once `watermarks` confirms it."""
        result = self._put_plain(message)
        if result is None:
            if message.delay_level or message.properties or message.encoded_properties:
                try:
                    message = self._schedule.apply(message)
                except Refusal as refusal:
                    return refusal.result
            result = self._append(message)
        # The clock is not read again. If it was set back, the facade's timer ticks.
        if result.store_timestamp - self.last_tick > _LONGEST_TICK:
            self.tick(LONGEST_TURN)
        return result

    def put_fields(
        self,
        topic: str,
        body: bytes,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        queue_id: int = 0,
    ) -> PutResult:
        """Append the message with these fields, as `put` does, without a `Message`."""
        result = self._put_plain_fields(topic, body, tags, keys, queue_id)
        if result is None:
            return self.put(Message(topic, body, tags, keys, queue_id=queue_id))
        if result.store_timestamp - self.last_tick > _LONGEST_TICK:
            self.tick(LONGEST_TURN)
        return result

    def put_again(self, message: Message) -> PutResult:
        """Append a message that was accepted before, and whose delay may count now.

        It needs no room for later properties: it loses optional properties if it is too long. If it
        is still too long to wait for a delay level, it does not wait.
        """
        try:
            waiting = self._schedule.apply(message, is_new=False)
        except Refusal as refusal:
            return refusal.result
        result = self.redelivery.put(waiting)
        if result.is_permanent and waiting.topic == SCHEDULE_TOPIC:
            return self.redelivery.put(message)
        return result

    def put_many(self, messages: Sequence[Message]) -> list[PutResult]:
        """Append messages of any topics and queues in a single call, each as `put` does."""
        results = self._appender.put_runs(messages)
        if len(results) < len(messages):
            results += self._put_others(messages[len(results) :])
        self._tick_if_late()
        return results

    def _put_others(self, messages: Sequence[Message]) -> list[PutResult]:
        refused: dict[int, PutResult] = {}
        if any_may_be_delayed(messages):
            messages, refused = self._apply_schedule(messages)
        results = self._appender.put_many(messages)
        for number, refusal in refused.items():
            results.insert(number, refusal)
        return results

    def _apply_schedule(
        self, messages: Sequence[Message]
    ) -> tuple[list[Message], dict[int, PutResult]]:
        """Return the messages to put, and the results of the others by position, ascending."""
        taken: list[Message] = []
        refused: dict[int, PutResult] = {}
        for number, message in enumerate(messages):
            try:
                taken.append(self._schedule.apply(message))
            except Refusal as refusal:
                refused[number] = refusal.result
        return taken, refused

    def put_batch(self, batch: MessageBatch) -> PutResult:
        """Append all messages of a batch, or none."""
        result = self._appender.put_batch(batch)
        self._tick_if_late()
        return result

    def put_drafts(
        self,
        drafts: Drafts,
        topic: str,
        queue_ids: Sequence[int],
        born_host: str,
        *,
        whole: bool = False,
    ) -> int:
        """Append encoded messages, as `Appender.put_drafts` does."""
        count = self._appender.put_drafts(drafts, topic, queue_ids, born_host, whole=whole)
        self._tick_if_late()
        return count

    def put_sent(
        self,
        topic: str,
        queue_id: int,
        born_host: str,
        data: bytes,
        properties: Bytes,
        numbers: Longs,
    ) -> Placed | None:
        """Append one message of a client, as `SentPuts.put` does."""
        placed = self._put_sent(topic, queue_id, born_host, data, properties, numbers)
        # The clock is not read again, as in `put`.
        if placed is not None and placed[2] - self.last_tick > _LONGEST_TICK:
            self.tick(LONGEST_TURN)
        return placed

    def _tick_if_late(self) -> None:
        is_late = self.clock.milliseconds() - self.last_tick > _LONGEST_TICK
        if is_late and not self.fork_guard.is_child:
            self.tick(LONGEST_TURN)

    # Receiving, on a slave

    def _arrived(self, topic: str, queue_id: int, end: int) -> None:
        """Notify readers of new messages; note the next offset of a queue if a master has put
        them.
        """
        if self.settings.is_slave:
            self.offsets.set(topic, queue_id, end)
        self.reads.arrivals(topic, queue_id, end)

    def _restarted(self, topic: str, before: int) -> None:
        """End the incarnation of a topic that its master has deleted and created again."""
        ended = self.end_topic(topic, before)
        _log.warning(
            "topic %s begins again: its messages before physical offset %d, in %d queues, are"
            " removed: the master has deleted and created the topic again",
            topic,
            before,
            ended,
        )

    def receive(self, data: bytes | memoryview) -> None:
        """Append bytes of the master's log that begin at `received.expected`.

        Raises:
            StoreError: the bytes are not records, or this store accepts nothing now.
            DiskError: there is no room on the disk. What `received` holds is dropped, as after a
                StoreError.
        """
        self.fork_guard.check()
        if self.not_writable is not None or self._is_shut_down:
            raise StoreError(f"the store is read-only: {self.not_writable or 'it is shut down'}")
        try:
            self.received.take(data)
        except BaseException:
            self.received.drop()
            raise

    def following(self) -> Generator[Job]:
        """Prepare for the records of a master, which may have no checksums.

        Yields:
            The waits for the disk; to be run, in any thread, before it continues.
        """
        yield from self._prepared(None, self._restarted)

    def _prepared(
        self,
        checksummed: Checksummed | None,
        on_restart: Callable[[str, int], object] | None,
    ) -> Generator[Job]:
        """Expect the records of another role; if the disk refuses the checkpoint, those of the old
        role again.

        Args:
            checksummed: which records have checksums from now on.
            on_restart: as in the dispatcher.
        """
        checkpoint, dispatcher = self._checkpoint, self.dispatcher
        before = checkpoint.checksummed, dispatcher.on_restart
        checkpoint.checksummed, dispatcher.on_restart = checksummed, on_restart
        try:
            yield self._pending_checkpoint()
        except BaseException:
            checkpoint.checksummed, dispatcher.on_restart = before
            raise

    def leading(self) -> Generator[Job | None]:
        """Prepare to put messages after those of a master.

        Yields:
            As `following`; None after each turn of dispatch, so that others are served.

        Raises:
            StoreError: received records cannot be dispatched, or the disk failed.
        """
        self.received.drop()
        yield self.log.unsynced()
        followed, self.copies.followed = self.copies.followed, None
        try:
            yield from self._dispatch_received()
            yield from self._clamp_offsets()
            checksummed = self._checkpoint.checksummed
            if self.settings.enabled_append_prop_crc:
                checksummed = Checksummed(self.log.end, STILL_OPEN)
            yield from self._prepared(checksummed, None)
        except BaseException:
            # A slave again: it shows no more than its master confirms, except what is dispatched.
            self.copies.followed = followed
            raise

    def _dispatch_received(self) -> Generator[None]:
        """Dispatch all of the log; yield after each turn.

        Raises:
            StoreError: a record cannot be dispatched.
        """
        stalls = 0
        while self.watermarks.dispatched < self.log.end:
            before, entries = self.watermarks.dispatched, self.dispatcher.entries
            self._dispatch(LONGEST_TURN)
            is_stalled = (self.watermarks.dispatched, self.dispatcher.entries) == (before, entries)
            # The first turn at a record that needs a larger window only makes that. Records of
            # thousands of new queues take many turns.
            stalls = stalls + 1 if is_stalled else 0
            if self._dispatch_failure is not None or stalls > 1:
                raise self._dispatch_failure or StoreError(
                    f"nothing is dispatched from physical offset {before} on"
                )
            yield None

    def begin_at(self, physical_offset: int) -> None:
        """Let an empty log begin where a master's first file begins.

        Raises:
            StoreError: the log is not empty.
            DiskError: the disk failed.
        """
        if self.log.segments and self.log.end > self.log.min_offset:
            raise StoreError(
                f"the log is not empty: it ends at {self.log.end}; use a new store directory"
            )
        try:
            self.log.begin_at(physical_offset)
        except SyncError as error:
            self.fail(error)
            raise
        self.dispatcher.position = physical_offset
        # Without it, the next start would consider the first files lost.
        self.checkpoint()

    def tick(self, seconds: float = inf) -> bool:
        """Dispatch everything that is confirmed; return whether that is done, or failed.

        If it fails, the store accepts no messages until a later tick succeeds. Once the store is
        shut down, dispatch is left to `close`, which another thread may be running.

        Args:
            seconds: the time after which the rest is left to the next tick.

        Raises:
            StoreError: this process is a child, forked since the store was opened.
        """
        self.fork_guard.check()
        return self._is_shut_down or self._dispatch(seconds)

    def _dispatch(self, seconds: float = inf) -> bool:
        self.last_tick = self.clock.milliseconds()
        is_over = True
        try:
            self.log.prepare_next()
            until = inf if seconds == inf else perf_counter() + seconds
            self.dispatcher.run(self.watermarks.confirmed, until)
            is_over = perf_counter() < until or self._is_dispatched
            self._dispatch_failure = None
        except SyncError as error:
            self.fail(error)
        except Exception as error:  # noqa: BLE001 (whoever ticks goes on: a later tick may succeed)
            self._dispatch_failed(error)
        self._update_writable()
        return is_over

    @property
    def _is_dispatched(self) -> bool:
        return self.watermarks.dispatched >= self.watermarks.confirmed

    def _dispatch_failed(self, error: Exception) -> None:
        self.dispatch_failures += 1
        reason = f"dispatch failed: {type(error).__name__}: {error}"
        failure = error if isinstance(error, StoreError) else StoreError(reason)
        # The same failure recurs with every tick.
        if failure is not error and reason != str(self._dispatch_failure):
            _log.error("dispatch failed", exc_info=error)
        self._dispatch_failure = failure

    def _update_writable(self) -> None:
        failure = self.failure or self._dispatch_failure
        reason = str(failure) if failure else self.retention.not_writable
        if reason == self.not_writable:
            return
        if reason is not None:
            _log.error("the store accepts no messages: %s", reason)
        else:
            _log.info("the store accepts messages again")
        self.not_writable = reason
        self._appender.set_not_writable(reason)

    # Durability

    def fail(self, error: StoreError) -> None:
        """Accept no more messages until the store is opened again, for this reason.

        Of the disk's errors, only a `SyncError` is such a reason: after any other error, the
        operation is tried again.
        """
        if self.failure is None:
            _log.error("the store accepts no more messages until it is opened again: %s", error)
            self.failure = error
        self._update_writable()

    def sync_log(self) -> None:
        """Return once every message is durable and dispatched.

        Raises:
            SyncError: the disk failed; the store accepts no more messages.
            DiskError: the disk refused an operation; the same call may succeed later.
        """
        self._complete(self.log.unsynced())
        self._dispatch()

    def checkpoint(self) -> None:
        """Return once all files, and a checkpoint that records this, are durable.

        Raises:
            DiskError: as for `sync_log`.
        """
        self._complete(self._pending_checkpoint())

    # Deleting topics

    def end_topic(self, topic: str, before: int | None = None) -> int:
        """Let the incarnation of a topic be dead: its queues are empty, and begin with 0 again.

        The table of incarnations is to be written, and then the queues' files removed: `removal`
        does all of it, and otherwise services do.

        Args:
            before: the physical offset before which records are dead; by default, the log's end.

        Returns:
            The number of the queues.

        Raises:
            StoreError: an entry of a queue cannot be read; nothing was done.
        """
        ended = self.queues.end(topic, before)
        waiting = self._undispatched(topic)
        if ended or waiting or before is not None or self._has_waiting_messages():
            end = (self.log.end, self.log.end) if before is None else (before,)
            self.config.incarnations.end_topic(topic, *end)
        if ended:
            self.dispatcher.forget_queues()
            self.reads.forget()
        for queue_id in {*ended, *waiting}:
            self.offsets.remove(topic, queue_id)
        # Nothing may derive the entries again.
        self._last_checkpoint = -inf
        return len(ended)

    def _has_waiting_messages(self) -> bool:
        """Return whether messages may wait for a topic that has no queue yet."""
        is_dispatched = self.dispatcher.position >= self.log.end
        return not is_dispatched or any(self.queues.ids(topic) for topic in WAITING)

    def _undispatched(self, topic: str) -> list[int]:
        """Return the queues of a topic that have been put messages which are not dispatched yet."""
        if self.settings.is_slave or self.dispatcher.position >= self.log.end:
            return []
        return [queue_id for name, queue_id in self.offsets.table if name == topic]

    def remove_topic(self, topic: str) -> None:
        """Delete a topic's messages, its queues, and the groups' offsets in them, durably.

        The records stay in the log, but nothing derives queues from them again.

        Raises:
            SyncError: the disk failed; the store accepts no more messages.
            DiskError: the disk refused an operation; the same call completes it.
        """
        for job in self.removal(topic):
            if job is not None:
                self._complete(job)

    def removal(self, topic: str, before: int | None = None) -> Generator[Job | None]:
        """Do what `remove_topic` does, one file at a time: thousands of queues take seconds.

        Messages that are put after the first step belong to the topic's next incarnation.

        Args:
            before: on a slave, the physical offset before which the master has deleted the topic:
                queues with later messages stay, and the offsets of groups, which are the master's.

        Yields:
            The waits for the disk; to be run, in any thread, before it continues. None after each
            other step, so that others are served.

        Raises:
            SyncError: as for `remove_topic`.
            DiskError: as for `remove_topic`.
        """
        self.end_topic(topic, before)
        # This comes first: a stop at any moment after it leaves a deleted topic, whatever is left
        # of its files. The log comes before it: no power loss leaves a log that ends earlier.
        yield self.log.unsynced()
        if (table := self.config.incarnations.write()) is not None:
            yield table
        consumer_offsets = self.config.consumer_offsets
        for group in consumer_offsets.groups_of(topic) if before is None else ():
            consumer_offsets.remove(group, topic)
            yield None
        try:
            for _ in self.queues.burial(topic):
                yield None
        except SyncError as error:
            self.fail(error)
            raise
        yield self._pending_checkpoint()

    def _complete(self, job: Job) -> None:
        self.fork_guard.check()
        if self.failure is not None:
            raise self.failure
        try:
            job.run()
        except SyncError as error:
            self.fail(error)
            raise
        job.done()

    def _pending_checkpoint(self) -> PendingCheckpoint:
        now, entries = self.clock.monotonic(), self.dispatcher.entries

        def note() -> None:
            self._last_checkpoint, self._entries_in_checkpoint = now, entries

        parts = [self.log.unsynced(), self.queues.pending_sync(), self.index.pending_sync()]
        ended, upto = self.config.incarnations.write(), reached(self.dispatcher, self.index)
        turn = self._checkpoint.next_turn()
        return PendingCheckpoint(parts, ended, self._checkpoint, upto, turn, note)

    # Services

    def _services(self) -> list[Service]:
        settings = self._settings
        return [
            self.flush_service,
            Service(
                lambda: settings.now.flush_interval_consume_queue,
                self._derived_flush,
                "checkpoint",
            ),
            Service(_LINKS_INTERVAL, self._check_links, "links"),
            Service(self._burial_interval, self._bury, "deletedQueues"),
            Service(_PRUNE_INTERVAL, self._prune, "incarnations"),
            *self.retention.services(),
            *self._of_master(self.scheduled.services(), self.scheduled.begin),
            *self._of_master(self.timers.services(), self.timers.begin),
            self.timers.file_service(),
            *self._of_master(self.transactions.services(), self.transactions.begin),
            *self.redelivery.services(),
            *self.config.services(),
        ]

    def _of_master(self, services: list[Service], begin: Callable[[], None]) -> list[Service]:
        """Stop services while this store belongs to a slave: what they put comes from the master.

        Args:
            begin: called before they start again, to adopt what the master has done.
        """
        is_resting = False

        def resting(start: Callable[[], Started]) -> Callable[[], Started]:
            def start_at_master() -> Started:
                nonlocal is_resting
                if self.settings.is_slave:
                    is_resting = True
                    return None
                if is_resting:
                    begin()
                    is_resting = False
                return start()

            return start_at_master

        for service in services:
            service.start = resting(service.start)
        return services

    def _flush(self) -> Job | None:
        now, unflushed = self.clock.monotonic(), self.log.end - self.log.flushed
        settings = self.settings
        least = settings.flush_commit_log_least_pages * _PAGE
        is_late = (now - self._last_flush) * 1000 >= settings.flush_commit_log_thorough_interval
        # Nobody sees what the store itself has put before it is durable.
        is_sync = settings.flush_disk_type is FlushDiskType.SYNC_FLUSH
        is_due = unflushed >= least or is_late or is_sync
        if self.failure or not unflushed or not is_due:
            return None
        self._last_flush = now
        return self.log.unsynced()

    def _check_links(self) -> None:
        """Raise an error if files in use were removed: messages that are put then would be lost."""
        try:
            self.log.check_linked()
            self.queues.check_linked()
            self.index.check_linked()
        except SyncError as error:
            self.fail(error)

    def _burial_interval(self) -> int:
        return _BURIAL_INTERVAL if self.queues.has_dead else _LINKS_INTERVAL

    def _bury(self) -> None:
        """Remove files of dead queues, after the table of incarnations says that they are dead."""
        incarnations = self.config.incarnations
        if not self.queues.has_dead or not incarnations.is_kept(incarnations.changes):
            return
        until = perf_counter() + _BURIAL_TURN
        for _ in self.queues.burial():
            if perf_counter() >= until:
                break

    def _prune(self) -> None:
        """Forget the incarnations of names that the log and the tables no longer have."""
        config = self.config
        config.incarnations.prune(
            self.log.min_offset,
            lambda topic: topic in config.topics or bool(self.queues.ids(topic)),
            lambda group: group in config.groups or bool(config.consumer_offsets.topics_of(group)),
        )

    def _derived_flush(self) -> Job | None:
        """Sync derived files once there are enough new entries, or they have waited long."""
        settings = self.settings
        new = (self.dispatcher.entries - self._entries_in_checkpoint) * ENTRY_SIZE
        waited = (self.clock.monotonic() - self._last_checkpoint) * 1000
        is_late = waited >= settings.flush_consume_queue_thorough_interval
        if self.failure or (new < settings.flush_consume_queue_least_pages * _PAGE and not is_late):
            return None
        return self._pending_checkpoint()

    def shut_down(self) -> None:
        """Accept no more messages, because the store is about to be closed."""
        self._is_shut_down = True
        # Closing dispatches all that is kept.
        self.copies.in_sync_set = self.copies.followed = None
        self._appender.shut_down()

    def close(self) -> None:
        """Stop cleanly: dispatch everything, make it durable, and release the directory.

        Raises:
            StoreError: the store failed, now or before: the next start recovers. Or this process is
                a child, forked since the store was opened: the directory stays the parent's.
        """
        self.fork_guard.check()
        self.shut_down()
        self.reads.arrivals.close()
        with self._held:
            try:
                self._stop()
            except BaseException:
                self._keep_tables()
                raise
            finally:
                self._close_files()

    def _stop(self) -> None:
        self.sync_log()
        self.scheduled.keep()
        self.transactions.keep()
        self.config.persist()
        self.timers.close()
        if self._dispatch_failure is not None:
            raise self._dispatch_failure
        self.checkpoint()
        self._checkpoint.write(reached(self.dispatcher, self.index), is_clean_stop=True)
        mark_closed(self.directory)

    def _keep_tables(self) -> None:
        """Write topics, groups and offsets of a store that cannot be stopped cleanly."""
        try:
            self.config.persist()
        except Exception as error:  # noqa: BLE001 (why it cannot be stopped is what is raised)
            _log.error("topics, groups and offsets could not be written: %s", error)

    def abandon(self) -> None:
        """Release the directory as it is; the next start recovers."""
        self.fork_guard.check()
        self.shut_down()
        self.reads.arrivals.close()
        with self._held:
            self._close_files()

    def _close_files(self) -> None:
        self.queues.close()
        self.index.close()
        self.log.close()


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
