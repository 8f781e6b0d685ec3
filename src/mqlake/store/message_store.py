"""A live store for asyncio (docs/live-store.md).

Upstream: `DefaultMessageStore`, `FlushRealTimeService`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Self

from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.drafts import Drafts
from mqlake.errors import StoreError, SyncError
from mqlake.metrics.histogram import Histogram
from mqlake.storage.clock import Clock
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.acknowledgements import Acknowledgements
from mqlake.store.answers import Answers
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutError, PutResult, PutStatus
from mqlake.store.config.keeping import Keeping, KeptTable
from mqlake.store.config_store import ConfigStore
from mqlake.store.core.health import Health
from mqlake.store.core.puts import Puts
from mqlake.store.core.ticks import LONGEST_TURN
from mqlake.store.delivery.redelivery import Redelivery
from mqlake.store.delivery.timers import TimerMessages
from mqlake.store.delivery.transactions import Ended, Transactions
from mqlake.store.disk_threads import disk_threads
from mqlake.store.incarnations.table import OwnedIncarnations
from mqlake.store.live_settings import Current, GivenSettings, open_settings
from mqlake.store.log_copying import LogCopying, waiting
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reads.live_reads import LiveReads
from mqlake.store.reads.tail import Following, Tail
from mqlake.store.recovery.recovery import Progress
from mqlake.store.replication.copies import Copies
from mqlake.store.retention.retention import Retention
from mqlake.store.services import (
    LOADED_TICK,
    LOOK_INTERVAL,
    MANY_RECEIVED,
    PAUSE,
    RECEIVED_TICK,
    TICK,
    Job,
)
from mqlake.store.settings import StoreSettings
from mqlake.store.watermarks import Watermarks

_log = logging.getLogger(__name__)

_OK = PutStatus.PUT_OK
_MANY_WAITING = 16
"""Puts for which a dispatch may wait that takes as long as they do."""
_TURN = 0.002
"""Seconds after which others are served while a topic is removed."""


class MessageStore(Answers):
    """A store directory that this process owns; for the tasks of one event loop.

    `async with MessageStore.open(path) as store:` takes ownership of the directory, recovers its
    contents, and leaves it cleanly. Puts raise `PutError` when they are refused, or when the disk
    fails; what was acknowledged is as durable as `flushDiskType` says.

    Attributes:
        core: the store itself, for everything that needs no waiting. It is set while the store is
            open, as are the following parts: see `port.Store`, which this class implements.
        failed: done once the store's service task has ended, with the reason. The store then
            accepts no more messages, and delivers and stores nothing: close it, and open it again.
            Set while the store is open.
    """

    core: OwnedStore
    clock: Clock
    directory: OwnedDirectory
    watermarks: Watermarks
    reads: LiveReads
    config: ConfigStore
    incarnations: OwnedIncarnations
    redelivery: Redelivery
    timers: TimerMessages
    transactions: Transactions
    retention: Retention
    health: Health
    copies: Copies
    copying: LogCopying
    failed: asyncio.Future[StoreError]
    _puts: Puts

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: Current[StoreSettings],
        progress: Progress | None,
        directory: OwnedDirectory | None,
        clock: Clock | None,
    ) -> None:
        self._path, self._settings, self._progress = path, settings, progress
        self._given_directory, self._given_clock = directory, clock
        self._tick_timer: asyncio.TimerHandle | None = None
        self._removals: set[asyncio.Task[None]] = set()
        self._removing = asyncio.Lock()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        settings: GivenSettings = None,
        *,
        progress: Progress | None = None,
        directory: OwnedDirectory | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Return a store to be entered with `async with`; it is created if missing.

        Args:
            path: the directory (`storePathRootDir`).
            settings: names and values of `broker.conf`, or the path of such a file; or settings
                that their owner may replace while the store is open (`LiveSettings`).
            progress: called with the progress of recovery.
            directory: the directory of the store's bytes; by default, the local directory at
                `path`.
            clock: stamps messages and schedules services; by default, this machine's clock.

        Raises:
            StoreError: settings are wrong; on entering, see `OwnedStore.open`.
        """
        return cls(path, open_settings(settings), progress, directory, clock)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._disk = disk_threads()
        try:
            self.core = await self._loop.run_in_executor(self._disk, self._open)
        except BaseException:
            self._disk.shutdown()
            raise
        self._hand_out(self.core)
        self._acknowledgements = Acknowledgements(self.core, self._settings, self._sync)
        self._keeping = Keeping(self._run)
        self._closing = asyncio.Event()
        self.failed = self._loop.create_future()
        self._serving = self._loop.create_task(self._serve())
        self._serving.add_done_callback(self._served)
        return self

    def _hand_out(self, core: OwnedStore) -> None:
        self.clock, self.directory, self.watermarks = core.clock, core.directory, core.watermarks
        self.reads, self.config, self.retention = core.reads, core.config, core.retention
        self.redelivery, self.timers = core.redelivery, core.timers
        self.transactions, self.health, self._puts = core.transactions, core.health, core.puts
        self.copies, self.incarnations = core.copies, core.config.incarnations
        self.copying = LogCopying(core, self._sync, self._run, self._received)

    def _open(self) -> OwnedStore:
        directory = self._given_directory or LocalOwnedDirectory.make(self._path)
        return OwnedStore.open(directory, self._settings, self._given_clock, self._progress)

    async def __aexit__(self, kind: type[BaseException] | None = None, *failure: object) -> None:
        # A child that ends inside the block, for example by SystemExit, has nothing to close.
        if kind is None or not self.core.fork_guard.is_child:
            await self.close()

    async def close(self) -> None:
        """Dispatch and sync everything, and release the directory.

        Raises:
            StoreError: the disk failed, or the store did before: the next start recovers. Or this
                process is a child, forked since the store was opened.
        """
        # A child has neither the threads nor the tasks that are awaited below.
        self.core.fork_guard.check()
        await asyncio.gather(*self._removals, return_exceptions=True)
        await self._keeping.end()
        self._closing.set()
        # The task is not cancelled: the job that it may wait for writes files that closing also
        # writes.
        await asyncio.gather(self._serving, return_exceptions=True)
        # From here on, this loop must not touch what another thread closes.
        self.core.shut_down()
        await self._acknowledgements.finish()
        if self._tick_timer is not None:
            self._tick_timer.cancel()
        try:
            await self._loop.run_in_executor(self._disk, self.core.close)
        finally:
            self._disk.shutdown()

    async def keep(self, table: KeptTable) -> None:
        """Return once the current content of a table of `config` is durable.

        Raises:
            StoreError: the disk refused it, or the store is being closed.
        """
        await self._keeping.kept(table)

    # Properties

    @property
    def was_closed_cleanly(self) -> bool:
        """Return whether the last process closed the store."""
        return self.core.recovered.is_clean

    @property
    def largest_record(self) -> int:
        """Maximum size of one record, or of one batch of them, in bytes."""
        return self.core.log.largest_record

    @property
    def sync_times(self) -> Histogram:
        """Seconds that syncs of the log's files took since the store was opened."""
        return self.core.log.sync_times

    def queue_ends(self) -> Mapping[tuple[str, int], int]:
        """Return the next queue offset of each (topic, queue id); do not change it."""
        return self.core.offsets.table

    def dispatched_messages(self) -> int:
        """Return how many messages were dispatched since the start."""
        return self.core.dispatcher.count

    # Put

    async def put(self, message: Message) -> PutResult:
        """Append a message; return once it is as durable as the settings say.

        Raises:
            PutError: the message was refused, or the disk failed.
        """
        result = self._waiting(self._puts.put(message), message)
        if self._must_wait(result):
            # As `wait` does: a coroutine would add a step to each answer.
            if (flushed := self._acknowledgements.flushed(result)) is not None:
                await flushed
            if self.core.copies.are_counted:
                await self._acknowledgements.wait(result)
        return result

    async def put_fields(
        self,
        topic: str,
        body: bytes,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        queue_id: int = 0,
    ) -> PutResult:
        """Append the message with these fields, as `put` does, without a `Message`.

        Raises:
            PutError: the message was refused, or the disk failed.
        """
        result = self._puts.put_fields(topic, body, tags, keys, queue_id)
        if self.core.copies.are_counted:
            result = waiting(result, Message(topic, body, tags, keys, queue_id=queue_id))
        return await self._finish(result)

    async def put_many(self, messages: Sequence[Message]) -> list[PutResult]:
        """Append messages of any topics in a single call; return once all of them are durable.

        Refused messages are reported in their result; the others are put.

        Raises:
            PutError: the disk failed.
        """
        results = self.append_many(messages)
        if (last := self.watermarks.unconfirmed(results)) is not None:
            await self._acknowledgements.wait(last)
        return results

    async def put_batch(self, batch: MessageBatch) -> PutResult:
        """Append a batch as a client encoded it: all of its messages, or none.

        Raises:
            PutError: the batch was refused, or the disk failed.
        """
        return await self._finish(self._waiting(self._puts.put_batch(batch), batch))

    def append_many(self, messages: Sequence[Message]) -> list[PutResult]:
        """Append messages as `put_many` does, without waiting until they are confirmed."""
        results = self._puts.put_many(messages)
        self._tick_soon()
        if self.core.copies.are_counted:
            return [waiting(*pair) for pair in zip(results, messages, strict=True)]
        return results

    def append_batch(self, batch: MessageBatch) -> PutResult:
        """Append a batch as `put_batch` does, without waiting; a refusal is also a result."""
        result = self._puts.put_batch(batch)
        self._tick_soon()
        return self._waiting(result, batch)

    def append_drafts(
        self,
        drafts: Drafts,
        topic: str,
        queue_ids: Sequence[int],
        born_host: str,
        *,
        whole: bool = False,
    ) -> int:
        """Append encoded messages, as `Appender.put_drafts` does, without waiting."""
        count = self._puts.put_drafts(drafts, topic, queue_ids, born_host, whole=whole)
        self._tick_soon()
        return count

    def append_sent(
        self,
        topic: str,
        queue_id: int,
        born_host: str,
        data: bytes,
        properties: Bytes,
        numbers: Longs,
    ) -> tuple[int, int] | None:
        """Append one message of a client, as `SentPuts.put` does, without waiting.

        Returns:
            The physical offset and the queue offset; None if nothing was appended.
        """
        placed = self._puts.put_sent(topic, queue_id, born_host, data, properties, numbers)
        if placed is None:
            return None
        self._tick_soon()
        return placed[0], placed[1]

    def append_again(self, message: Message, *, may_wait: bool = False) -> PutResult:
        """Append a message that was accepted before; a refusal is also a result.

        It may be longer than the current `maxMessageSize`, and loses optional properties if it is
        too long for a record (`Redelivery`).

        Args:
            may_wait: whether a delay that its properties ask for counts.
        """
        again = self._puts.put_again if may_wait else self.redelivery.put
        result = again(message)
        self._tick_soon()
        return self._waiting(result, message)

    def continue_delays(self) -> None:
        """Continue to deliver delayed messages at the positions in the table of delay offsets.

        For callers that have changed that table.
        """
        self.core.scheduled.begin()

    def append_half(self, message: Message) -> PutResult:
        """Append a half message, of the group in its PGROUP; a refusal is also a result."""
        result = self.core.transactions.prepare(message)
        self._tick_soon()
        return result

    def append_end(
        self,
        physical_offset: int,
        queue_offset: int,
        group: str,
        *,
        commit: bool,
        is_answer: bool = False,
    ) -> Ended:
        """End a transaction as `Transactions.end` does, without waiting for the disk."""
        ended = self.core.transactions.end(
            physical_offset, queue_offset, group, commit=commit, is_answer=is_answer
        )
        self._tick_soon()
        return ended

    async def confirm(self, results: Sequence[PutResult]) -> Sequence[PutResult]:
        """Return results of appends once they may be acknowledged.

        Messages that are not durable, or not in time, then have another status.
        """
        if (last := self.watermarks.unconfirmed(results)) is None:
            return results
        try:
            await self._acknowledgements.wait(last)
        except PutError as error:
            failed, is_confirmed = error.result, self.watermarks.is_confirmed
            return [
                result if is_confirmed(result) else result.failed(failed.status, failed.reason)
                for result in results
            ]
        return results

    async def prepare(self, message: Message, group: str) -> PutResult:
        """Put a half message: nobody reads it before `end` commits it.

        Args:
            group: the producer group that is asked if `end` is never called.

        Raises:
            PutError: the message was refused, or the disk failed.
        """
        return await self._finish(self.core.transactions.prepare(message, group))

    async def end(self, half: PutResult, group: str, *, commit: bool) -> Ended:
        """Commit a half message, or roll it back.

        Args:
            half: the result of `prepare`.

        Raises:
            PutError: the message was refused, or the disk failed.
        """
        ended = self.core.transactions.end(
            half.physical_offset, half.queue_offset, group, commit=commit
        )
        if ended.put is not None:
            await self._finish(ended.put)
        return ended

    def _waiting(self, result: PutResult, message: Message | MessageBatch) -> PutResult:
        return waiting(result, message) if self.core.copies.are_counted else result

    async def _finish(self, result: PutResult) -> PutResult:
        if self._must_wait(result):
            await self._acknowledgements.wait(result)
        return result

    def _must_wait(self, result: PutResult) -> bool:
        if result.status is not _OK:
            raise PutError(result)
        self._tick_soon()
        return not self.watermarks.is_confirmed(result)

    def _tick_soon(self) -> None:
        if self._tick_timer is None:
            since = (self.core.clock.milliseconds() - self.core.ticks.last) / 1000
            is_loaded = since < LOADED_TICK
            self._tick_timer = self._loop.call_later(LOADED_TICK if is_loaded else TICK, self._tick)
        self.copying.tell()

    def _received(self, size: int) -> None:
        """Dispatch what a master has sent; see `_tick_soon`."""
        if size >= MANY_RECEIVED and self._tick_timer is None:
            self._tick_timer = self._loop.call_later(RECEIVED_TICK, self._tick)
        self._tick_soon()

    def _tick(self) -> None:
        self._tick_timer = None
        self._tick_now()

    def _tick_now(self) -> None:
        """Dispatch for one turn, and the rest after requests have been served in between."""
        if not self.core.tick(LONGEST_TURN) and self._tick_timer is None:
            self._tick_timer = self._loop.call_later(0, self._tick)
        self.copying.tell()

    async def _sync(self) -> None:
        """Make the log durable, and dispatch what is then confirmed.

        Where many puts wait, they are answered first. If they are followed by others, it is
        dispatched while those wait for the disk.
        """
        await self._run(self.core.log.unsynced(), beside=self.catch_up)
        # Slaves may be sent what is durable; it may be confirmed only once they have it.
        self.copying.tell()
        if not self._acknowledgements.would_release(_MANY_WAITING):
            self.catch_up()
        else:  # In the round of the loop after the one in which they are answered.
            self._loop.call_soon(self._loop.call_soon, self._tick_unless_syncing)

    def _tick_unless_syncing(self) -> None:
        if not self._acknowledgements.is_syncing:
            self.catch_up()

    def catch_up(self) -> bool:
        """Dispatch what is confirmed now, and not at the next tick; return whether there was any.

        What takes longer than one turn is left to the next tick.
        """
        if self.watermarks.dispatched >= self.watermarks.confirmed:
            return False
        self._tick_now()
        return True

    # Read

    @property
    def guard(self) -> AbstractContextManager[object]:
        """A guard that does nothing: the store is for the tasks of one loop."""
        return nullcontext()

    def tail(
        self,
        topic: str,
        queue_ids: Iterable[int] | None = None,
        offset: int | Mapping[int, int] | None = None,
        *,
        tags: str | None = None,
    ) -> Following:
        """Yield the messages of a topic as they arrive, each queue in its order.

        It ends when the store is closed. Reading starts at the call, not at the first await.

        Args:
            queue_ids: the queues to read; by default all, including later ones.
            offset: where to begin, in each queue or by queue; by default, after the existing
                messages.
            tags: an expression such as "TagA || TagB".
        """
        return Following(Tail(self.core.reads, topic, queue_ids, offset, tags=tags))

    # Services

    async def _serve(self) -> None:
        while not await self._is_closing_after(LOOK_INTERVAL):
            self._tick_now()
            while (job := self.core.services.due()) is not None:
                if job is PAUSE:
                    await asyncio.sleep(0)
                    continue
                await self._run(job)
                # What it made durable is dispatched before its puts are answered.
                self.catch_up()
                self._acknowledgements.release()
            self._acknowledgements.release()

    def _served(self, task: asyncio.Task[None]) -> None:
        """Raise an error if the service task has ended for another reason than closing."""
        if task.cancelled():
            reason, error = "it was cancelled", None
        elif (error := task.exception()) is not None:
            reason = f"{type(error).__name__}: {error}"
        else:
            return
        failure = StoreError(f"the store's service task has ended: {reason}; open the store again")
        _log.critical("%s: %s", self._path, failure, exc_info=error)
        self.health.fail(failure)
        self._acknowledgements.release()
        self.failed.set_result(failure)

    async def _is_closing_after(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._closing.wait()
        except TimeoutError:
            return False

    def sync_log(self) -> None:
        """Return once every message is durable and dispatched. It blocks the event loop.

        Raises:
            SyncError: the disk failed; the store accepts no more messages.
            DiskError: the disk refused an operation; the same call may succeed later.
        """
        self.core.durability.sync_log()
        self._acknowledgements.release()

    async def trim(self) -> None:
        """Make everything durable, and remove what retention does not keep, without waiting for it.

        Raises:
            SyncError, DiskError: as `sync_log`, or a file cannot be removed.
        """
        self.sync_log()
        self.core.durability.checkpoint()
        self.retention.check()
        while (job := self.retention.remove_next()) is not None:
            await self._run(job)

    async def remove_topic(self, topic: str, before: int | None = None) -> None:
        """Remove a topic's queues, as `TopicRemoval.remove` does, durably.

        Others are served meanwhile. Messages that are put to the topic before it returns may be
        removed, or belong to the topic's next incarnation.

        Args:
            before: as for `TopicRemoval.steps`.

        Raises:
            StoreError: a sync failed, now or before.
            DiskError: the disk refused another operation; the same call completes it.
        """
        # The caller may be cancelled, and the store closed: half a topic is not left behind.
        task = self._loop.create_task(self._remove_topic(topic, before))
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)
        await asyncio.shield(task)

    async def _remove_topic(self, topic: str, before: int | None) -> None:
        # Two removals of one topic would remove the same files, or those of its successor.
        async with self._removing:
            await self._remove_queues(topic, before)

    async def _remove_queues(self, topic: str, before: int | None) -> None:
        removal, until = self.core.removal.steps(topic, before), perf_counter() + _TURN
        for job in removal:
            if job is not None:
                await self._run(job)
                if self.health.failure is not None:
                    raise self.health.failure
            if perf_counter() >= until:
                await asyncio.sleep(0)
                until = perf_counter() + _TURN
        if self.health.failure is not None:
            raise self.health.failure

    async def _run(self, job: Job, beside: Callable[[], object] | None = None) -> None:
        """Run a job in another thread; a failed sync is a failure of the store.

        Args:
            beside: called in this thread while the job runs.

        Raises:
            DiskError: the disk refused another operation; the job is not done.
        """
        try:
            running = self._loop.run_in_executor(self._disk, self._run_in_thread, job)
            if beside is not None:
                beside()
            await running
            job.done()
        except SyncError as error:
            self.health.fail(error)

    def _run_in_thread(self, job: Job) -> None:
        try:
            job.run()
        except SyncError as error:
            # The caller that waits for the job may have been cancelled: the failure counts
            # nevertheless.
            self._loop.call_soon_threadsafe(self.health.fail, error)
            raise
