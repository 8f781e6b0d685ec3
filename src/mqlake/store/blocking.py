"""A live store for threads (docs/live-store.md)."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Condition, Event, Lock, Thread
from time import sleep
from typing import Self

from mqlake.errors import StoreError, SyncError
from mqlake.formats.record import Record
from mqlake.storage.fork_guard import ForkGuard
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.answers import StoreAnswers
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutError, PutResult, PutStatus
from mqlake.store.delivery.transactions import Ended
from mqlake.store.live_settings import GivenSettings, open_settings
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reads.tail import Tail, follow_blocking
from mqlake.store.recovery.recovery import Progress
from mqlake.store.services import LOOK_INTERVAL, TICK, Job

# Seconds between ticks while puts tick themselves: waking more often would only stop them.
_BESIDE_PUTS = 0.01

_OK = PutStatus.PUT_OK

_log = logging.getLogger(__name__)


class BlockingMessageStore(StoreAnswers):
    """A store directory that this process owns; for any number of threads.

    `with BlockingMessageStore.open(path) as store:` is `MessageStore` without asyncio. Threads that
    put at the same time under SYNC_FLUSH share one sync.

    Attributes:
        core: the store itself; use it only while holding `lock`.
        lock: the lock of the core.
    """

    def __init__(self, core: OwnedStore) -> None:
        self.core = core
        self._make_locks()
        self._puts = puts = core.puts
        self._put, self._answer_if_busy = puts.put, puts.answer_if_busy
        self._put_fields = puts.put_fields
        self._watermarks = core.watermarks
        # No broker serves slaves from this store, so this does not change.
        self._confirms_at_append = core.watermarks.confirms_at_append
        self._is_syncing = False
        self._is_closing = False
        self._has_work = False
        self._fork_guard = ForkGuard(core.directory.describe(), self._make_locks)
        self._thread = Thread(target=self._serve_guarded, name="mqlake-store", daemon=True)
        self._thread.start()

    def _make_locks(self) -> None:
        # Created again in a forked child: the threads that held the locks do not exist there.
        self._mutex = Lock()
        self.lock = Condition(self._mutex)
        self._work = Event()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        settings: GivenSettings = None,
        *,
        progress: Progress | None = None,
    ) -> Self:
        """Take ownership of a directory, created if missing, and recover its contents.

        Arguments and errors are those of `MessageStore.open`.
        """
        directory = LocalOwnedDirectory.make(path)
        return cls(OwnedStore.open(directory, open_settings(settings), progress=progress))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *failure: object) -> None:
        # A child that ends inside the block, for example by SystemExit, has nothing to close.
        if kind is None or not self._fork_guard.is_child:
            self.close()

    def close(self) -> None:
        """Dispatch and sync everything, and release the directory.

        Raises:
            StoreError: the disk failed, or the store did before: the next start recovers. Or this
                process is a child, forked since the store was opened.
        """
        self._fork_guard.check()
        self._is_closing = True
        self._work.set()
        self._thread.join()
        with self.lock:
            self.core.close()

    # Put

    def put(self, message: Message) -> PutResult:
        """Append a message; return once it is as durable as the settings say.

        Raises:
            PutError: the message was refused, or the disk failed.
        """
        mutex = self._mutex
        # Only a put that holds the lock can make this one wait.
        if mutex.locked() and (busy := self._answer_if_busy(message)) is not None:
            raise PutError(busy)
        with mutex:
            result = self._put(message)
            if result.status is _OK and self._confirms_at_append and self._has_work:
                return result
            return self._finish(result)

    def put_fields(
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
        mutex = self._mutex
        if mutex.locked():
            return self.put(Message(topic, body, tags, keys, queue_id=queue_id))
        with mutex:
            return self._finish(self._put_fields(topic, body, tags, keys, queue_id))

    def put_batch(self, batch: MessageBatch) -> PutResult:
        """Append a batch as a client encoded it: all of its messages, or none.

        Raises:
            PutError: the batch was refused, or the disk failed.
        """
        if (busy := self._answer_if_busy(batch)) is not None:
            raise PutError(busy)
        with self._mutex:
            return self._finish(self._puts.put_batch(batch))

    def put_many(self, messages: Sequence[Message]) -> list[PutResult]:
        """Append messages of any topics in a single call; return once all of them are durable.

        Refused messages are reported in their result; the others are put.

        Raises:
            PutError: the disk failed.
        """
        with self.lock:
            results = self._puts.put_many(messages)
            if (last := self._watermarks.unconfirmed(results)) is not None:
                self._wait(last)
        self._wake()
        return results

    def prepare(self, message: Message, group: str) -> PutResult:
        """Put a half message: as `MessageStore.prepare`."""
        with self.lock:
            return self._finish(self.core.transactions.prepare(message, group))

    def end(self, half: PutResult, group: str, *, commit: bool) -> Ended:
        """Commit a half message, or roll it back: as `MessageStore.end`."""
        with self.lock:
            ended = self.core.transactions.end(
                half.physical_offset, half.queue_offset, group, commit=commit
            )
            if ended.put is not None:
                self._finish(ended.put)
        return ended

    def _finish(self, result: PutResult) -> PutResult:
        if result.status is not _OK:
            raise PutError(result)
        if not self._confirms_at_append and not self._watermarks.is_confirmed(result):
            self._wait(result)
        if not self._has_work:
            self._wake()
        return result

    def _wake(self) -> None:
        self._has_work = True
        self._work.set()

    def _wait(self, result: PutResult) -> None:
        """Wait until a put is confirmed: one thread syncs for all that have put before it
        begins.
        """
        core, is_confirmed = self.core, self._watermarks.is_confirmed
        timeout = core.settings.sync_flush_timeout
        deadline = core.clock.monotonic() + timeout / 1000
        while not is_confirmed(result):
            if (failure := core.health.failure) is not None:
                reason = str(failure)
                raise PutError(result.failed(PutStatus.UNKNOWN_ERROR, reason)) from failure
            if not self._is_syncing and result.end > core.log.flushed:
                self._sync(result)
            elif not self.lock.wait(deadline - core.clock.monotonic()):
                reason = f"the message is not durable after {timeout} ms"
                raise PutError(result.failed(PutStatus.FLUSH_DISK_TIMEOUT, reason))

    def _sync(self, result: PutResult) -> None:
        self._is_syncing = True
        try:
            self._run(self.core.log.unsynced())
        except Exception as error:
            self.core.durability.flush_service.failed(error)
            reason = f"the sync ended: {type(error).__name__}: {error}"
            raise PutError(result.failed(PutStatus.UNKNOWN_ERROR, reason)) from error
        finally:
            self._is_syncing = False
            self.lock.notify_all()
        self.core.tick()

    # Read

    @property
    def guard(self) -> AbstractContextManager[object]:
        """The lock of the core."""
        return self._mutex

    def tail(
        self,
        topic: str,
        queue_ids: Iterable[int] | None = None,
        offset: int | Mapping[int, int] | None = None,
        *,
        tags: str | None = None,
        timeout: float | None = None,
    ) -> Generator[Record]:
        """Yield the messages of a topic as they arrive: as `MessageStore.tail`.

        Args:
            timeout: seconds without a message after which it ends.
        """
        with self.lock:
            tail = Tail(self.core.reads, topic, queue_ids, offset, tags=tags)
        return follow_blocking(tail, self.lock, timeout)

    # Services

    def _serve_guarded(self) -> None:
        """Serve until the store is closed; fail loudly if anything else ends that."""
        try:
            self._serve()
        except BaseException as error:  # noqa: BLE001 (nobody else would hear of it)
            reason = f"{type(error).__name__}: {error}"
            failure = StoreError(
                f"the store's service thread has ended: {reason}; open the store again"
            )
            _log.critical("%s", failure, exc_info=error)
            with self.lock:
                self.core.health.fail(failure)
                self.lock.notify_all()

    def _serve(self) -> None:
        core, next_look = self.core, 0.0
        while not self._is_closing:
            if self._work.wait(LOOK_INTERVAL):
                self._work.clear()
                self._has_work = False
                self._tick_later()
            if core.clock.monotonic() >= next_look:
                next_look = core.clock.monotonic() + LOOK_INTERVAL
                with self.lock:
                    core.tick()
                    while (job := core.services.due()) is not None:
                        self._run(job)

    def _tick_later(self) -> None:
        last_tick = self.core.ticks.last
        sleep(TICK)
        if self.core.ticks.last != last_tick:
            sleep(_BESIDE_PUTS)
        with self.lock:
            self.core.tick()

    def _run(self, job: Job) -> None:
        """Run a job with the lock released; a failed sync is a failure of the store.

        Raises:
            DiskError: the disk refused another operation; the job is not done.
        """
        try:
            self.lock.release()
            try:
                job.run()
            finally:
                self.lock.acquire()
            job.done()
        except SyncError as error:
            self.core.health.fail(error)
