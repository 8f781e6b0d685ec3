"""Puts on an event loop that wait until they are confirmed (docs/live-store.md).

Upstream: `GroupCommitService`.
"""

from __future__ import annotations

import asyncio
from collections import deque

from mqlake.errors import StoreError
from mqlake.store.append.put_result import PutError, PutResult, PutStatus
from mqlake.store.live_settings import Current
from mqlake.store.loop.disk_jobs import DiskJobs
from mqlake.store.loop.dispatching import Dispatching
from mqlake.store.loop.log_growth import LogGrowth
from mqlake.store.owned_store import OwnedStore
from mqlake.store.replication.copies_awaited import CopiesAwaited
from mqlake.store.settings import StoreSettings

_Waiting = tuple[int, float, asyncio.Future[None], PutResult]
"""A waiting put: the physical offset that it waits for, the loop time at which it began to wait,
its future, and its result. A tuple, because each put under SYNC_FLUSH needs one.
"""

_MANY = 16
"""Puts for which a dispatch may wait that takes as long as they do."""


class Acknowledgements:
    """The puts of one store that are not confirmed yet. For the tasks of its event loop."""

    def __init__(
        self,
        core: OwnedStore,
        settings: Current[StoreSettings],
        jobs: DiskJobs,
        dispatching: Dispatching,
        growth: LogGrowth,
    ) -> None:
        self._core, self._settings = core, settings
        self._jobs, self._dispatching, self._growth = jobs, dispatching, growth
        self._watermarks = core.watermarks
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Waiting] = deque()
        self._expiry: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._copies = CopiesAwaited(core.copies, settings)
        settings.on_change(self._expire, "sync_flush_timeout")

    async def wait(self, result: PutResult) -> None:
        """Return once an append may be acknowledged.

        Raises:
            PutError: the disk failed, or it is late (`syncFlushTimeout`), or slaves are late.
        """
        if (flushed := self.flushed(result)) is not None:
            await flushed
        if result.waits_for_slaves and self._core.copies.are_counted:
            await self._copies.wait(result)

    def flushed(self, result: PutResult) -> asyncio.Future[None] | None:
        """Return a future that is done once an append is durable on this disk; None if it is.

        The future raises the errors of `wait`. Afterwards, slaves may have to be waited for.
        """
        end = result.end
        if end <= self._watermarks.kept:
            return None
        future, now = self._loop.create_future(), self._loop.time()
        self._waiting.append((end, now, future, result))
        if self._expiry is None:
            self._expiry = self._loop.call_at(now + self._patience, self._expire)
        if self._flushing is None:
            self._flushing = self._loop.create_task(self._flush())
        return future

    def release(self, reason: str | None = None) -> None:
        """Answer the puts that need not wait any longer.

        With a reason, answer all: those that are not durable fail with it.
        """
        failure, kept, waiting = self._core.health.failure, self._watermarks.kept, self._waiting
        reason = str(failure) if failure else reason
        while waiting and (reason is not None or waiting[0][0] <= kept):
            end, _, future, result = waiting.popleft()
            if future.done():
                continue
            if end <= kept:
                future.set_result(None)
            else:
                assert reason is not None
                failed = PutError(result.failed(PutStatus.UNKNOWN_ERROR, reason))
                failed.__cause__ = StoreError(reason)
                future.set_exception(failed)

    async def finish(self) -> None:
        """Return once no put waits any more: those that are still not confirmed fail."""
        if self._flushing is not None:
            await asyncio.gather(self._flushing, return_exceptions=True)
        self.release("the store was closed before the message was confirmed")
        self._copies.finish()
        if self._expiry is not None:
            self._expiry.cancel()

    async def _flush(self) -> None:
        """Sync the log until all waiting puts are durable: one sync serves many of them."""
        try:
            while any(waiting[0] > self._core.log.flushed for waiting in self._waiting):
                # Tasks that put in this round of the loop are included in this sync.
                await asyncio.sleep(0)
                await self.sync()
                self.release()
            self.release()  # Another sync may have been enough for all of them.
        except BaseException as error:
            self.release(f"the sync ended: {type(error).__name__}: {error}")
            if not isinstance(error, Exception):
                raise
            self._core.durability.flush_service.failed(error)
        finally:
            self._flushing = None

    async def sync(self) -> None:
        """Make the log durable, and dispatch what is then confirmed.

        Where many puts wait, they are answered first. If they are followed by others, it is
        dispatched while those wait for the disk.
        """
        catch_up = self._dispatching.catch_up
        await self._jobs.run(self._core.log.unsynced(), beside=catch_up)
        # Slaves may be sent what is durable; it may be confirmed only once they have it.
        self._growth.tell()
        if not self._would_release_many():
            catch_up()
        else:  # In the round of the loop after the one in which they are answered.
            self._loop.call_soon(self._loop.call_soon, self._dispatch_unless_syncing)

    def _would_release_many(self) -> bool:
        """Return whether many puts wait for what is durable now."""
        waiting = self._waiting
        return len(waiting) >= _MANY and waiting[_MANY - 1][0] <= self._watermarks.kept

    def _dispatch_unless_syncing(self) -> None:
        # If puts wait for a sync, it runs or is about to, and dispatches.
        if self._flushing is None:
            self._dispatching.catch_up()

    @property
    def _patience(self) -> float:
        """Maximum seconds that a put waits."""
        return self._settings.now.sync_flush_timeout / 1000

    def _expire(self) -> None:
        """Fail puts that have waited too long; check again when the next one has."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        now, patience = self._loop.time(), self._patience
        for _, since, future, result in self._waiting:
            if future.done():
                continue
            if since + patience > now:
                self._expiry = self._loop.call_at(since + patience, self._expire)
                return
            timeout = self._settings.now.sync_flush_timeout
            reason = f"the message is not durable after {timeout} ms"
            future.set_exception(PutError(result.failed(PutStatus.FLUSH_DISK_TIMEOUT, reason)))
