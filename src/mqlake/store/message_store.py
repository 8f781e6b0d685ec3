"""A live store for asyncio (docs/live-store.md).

Upstream: `DefaultMessageStore`, `FlushRealTimeService`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Self

from mqlake.storage.clock import Clock
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.answers import StoreAnswers
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutError, PutResult, PutStatus
from mqlake.store.core.puts import Puts
from mqlake.store.delivery.transactions import Ended
from mqlake.store.live_settings import Current, GivenSettings, open_settings
from mqlake.store.loop.acknowledgements import Acknowledgements
from mqlake.store.loop.appends import Appends
from mqlake.store.loop.disk_jobs import DiskJobs
from mqlake.store.loop.disk_threads import disk_threads
from mqlake.store.loop.dispatching import Dispatching
from mqlake.store.loop.keeping import Keeping
from mqlake.store.loop.log_copying import LogCopying
from mqlake.store.loop.log_growth import LogGrowth
from mqlake.store.loop.log_sync import LogSync
from mqlake.store.loop.removals import Removals
from mqlake.store.loop.service_task import ServiceTask
from mqlake.store.owned_store import OwnedStore
from mqlake.store.port import Store
from mqlake.store.reads.tail import Following, Tail
from mqlake.store.recovery.recovery import Progress
from mqlake.store.settings import StoreSettings

_OK = PutStatus.PUT_OK


class MessageStore(StoreAnswers, Store):
    """A store directory that this process owns; for the tasks of one event loop.

    `async with MessageStore.open(path) as store:` takes ownership of the directory, recovers its
    contents, and leaves it cleanly. Puts raise `PutError` when they are refused, or when the disk
    fails; what was acknowledged is as durable as `flushDiskType` says.

    The parts are set while the store is open.

    Attributes:
        core: the store itself, for everything that needs no waiting.
        directory: the directory of the store.
        clock: the clock of everything in the store.
        watermarks: how far the log is written, durable on this disk, confirmed and dispatched.
        reads: questions about messages and queues.
        offsets: the next offset of each queue.
        config: topics, consumer groups and their offsets.
        incarnations: which records of deleted topics and groups are dead.
        light: the light queues; None without `enableLmq`.
        appends: puts messages without waiting until they are confirmed.
        redelivery: messages that cannot be put to their topic.
        scheduled: delayed messages.
        timers: messages with a delivery time.
        transactions: half messages, and those whose producers are to be asked.
        retention: what removes files.
        health: failures.
        copies: which part of the log slaves have.
        copying: the bytes of the log, for slaves and from a master.
        dispatching: when messages get their queue and index entries.
        sync: makes the log durable on request.
        keeping: makes tables of `config` durable.
        removals: deletes the messages of topics.
        failed: done once the store's service task has ended, with the reason. The store then
            accepts no more messages, and delivers and stores nothing: close it, and open it again.
    """

    core: OwnedStore
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
        self._threads = disk_threads()
        try:
            self.core = await self._loop.run_in_executor(self._threads, self._open)
        except BaseException:
            self._threads.shutdown()
            raise
        self._take_parts(self.core)
        self._make_parts(self.core)
        return self

    def _open(self) -> OwnedStore:
        directory = self._given_directory or LocalOwnedDirectory.make(self._path)
        return OwnedStore.open(directory, self._settings, self._given_clock, self._progress)

    def _take_parts(self, core: OwnedStore) -> None:
        self.directory, self.clock, self.watermarks = core.directory, core.clock, core.watermarks
        self.reads, self.offsets, self.config = core.reads, core.offsets, core.config
        self.incarnations, self.redelivery = core.config.incarnations, core.redelivery
        self.scheduled, self.timers, self.light = core.scheduled, core.timers, core.light
        self.transactions, self.retention = core.transactions, core.retention
        self.health, self.copies, self._puts = core.health, core.copies, core.puts

    def _make_parts(self, core: OwnedStore) -> None:
        growth, jobs = LogGrowth(), DiskJobs(self._threads, core.health)
        self.dispatching = dispatching = Dispatching(core, growth)
        self._waiting = waiting = Acknowledgements(core, self._settings, jobs, dispatching, growth)
        self.appends = Appends(core, dispatching, waiting)
        self.copying = LogCopying(core, growth, dispatching, waiting, jobs)
        self.sync = LogSync(core, waiting, jobs)
        self.keeping = Keeping(jobs.run)
        self.removals = Removals(core.removal, core.health, jobs)
        self._services = ServiceTask(core, jobs, dispatching, waiting, os.fspath(self._path))
        self.failed = self._services.failed

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
        await self.removals.finish()
        await self.keeping.end()
        await self._services.end()
        # From here on, this loop must not touch what another thread closes.
        self.core.shut_down()
        await self._waiting.finish()
        self.dispatching.cancel()
        try:
            await self._loop.run_in_executor(self._threads, self.core.close)
        finally:
            self._threads.shutdown()

    # Put

    async def put(self, message: Message) -> PutResult:
        """Append a message; return once it is as durable as the settings say.

        Raises:
            PutError: the message was refused, or the disk failed.
        """
        result = self.appends.asked(self._puts.put(message), message)
        if self._must_wait(result):
            # As `wait` does: a coroutine would add a step to each answer.
            if (flushed := self._waiting.flushed(result)) is not None:
                await flushed
            if self.core.copies.are_counted:
                await self._waiting.wait(result)
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
            result = self.appends.asked(result, Message(topic, body, tags, keys, queue_id=queue_id))
        return await self._finish(result)

    async def put_many(self, messages: Sequence[Message]) -> list[PutResult]:
        """Append messages of any topics in a single call; return once all of them are durable.

        Refused messages are reported in their result; the others are put.

        Raises:
            PutError: the disk failed.
        """
        results = self.appends.many(messages)
        if (last := self.watermarks.unconfirmed(results)) is not None:
            await self._waiting.wait(last)
        return results

    async def put_batch(self, batch: MessageBatch) -> PutResult:
        """Append a batch as a client encoded it: all of its messages, or none.

        Raises:
            PutError: the batch was refused, or the disk failed.
        """
        return await self._finish(self.appends.batch(batch))

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

    async def _finish(self, result: PutResult) -> PutResult:
        if self._must_wait(result):
            await self._waiting.wait(result)
        return result

    def _must_wait(self, result: PutResult) -> bool:
        if result.status is not _OK:
            raise PutError(result)
        self.dispatching.soon()
        return not self.watermarks.is_confirmed(result)

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
