"""Puts on an event loop that wait until they are confirmed (docs/live-store.md).

Upstream: `GroupCommitService`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from mqlake.errors import StoreError
from mqlake.store.append.put_result import PutError, PutResult, PutStatus
from mqlake.store.live_settings import Current
from mqlake.store.owned_store import OwnedStore
from mqlake.store.replication.copies_awaited import CopiesAwaited
from mqlake.store.settings import StoreSettings


class _Waiting(NamedTuple):
    """A put that waits: up to which physical offset, since when (loop time)."""

    end: int
    since: float
    future: asyncio.Future[None]


class Acknowledgements:
    """The puts of one store that are not confirmed yet. For the tasks of its event loop.

    Args:
        sync: makes the log durable up to its end, and dispatches what is confirmed then.
    """

    def __init__(
        self,
        core: OwnedStore,
        settings: Current[StoreSettings],
        sync: Callable[[], Awaitable[None]],
    ) -> None:
        self._core, self._settings, self._sync = core, settings, sync
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
            PutError: the disk failed, or is late (`syncFlushTimeout`); or slaves are.
        """
        if result.end > self._watermarks.confirmed:
            await self._flushed(result)
        if result.waits_for_slaves:
            await self._copies.wait(result)

    async def _flushed(self, result: PutResult) -> None:
        future = self._loop.create_future()
        now = self._loop.time()
        self._waiting.append(_Waiting(result.end, now, future))
        if self._expiry is None:
            self._expiry = self._loop.call_at(now + self._patience, self._expire)
        if self._flushing is None:
            self._flushing = self._loop.create_task(self._flush())
        try:
            await future
        except StoreError as error:
            raise PutError(result.failed(PutStatus.UNKNOWN_ERROR, str(error))) from error
        except TimeoutError:
            reason = f"not on the disk after {self._settings.now.sync_flush_timeout} ms"
            raise PutError(result.failed(PutStatus.FLUSH_DISK_TIMEOUT, reason)) from None

    def release(self, reason: str | None = None) -> None:
        """Answer the puts that need not wait any longer; with a reason, all of them with that."""
        failure, confirmed = self._core.failure, self._watermarks.confirmed
        reason = str(failure) if failure else reason
        while self._waiting and (reason is not None or self._waiting[0].end <= confirmed):
            waiting = self._waiting.popleft()
            if waiting.future.done():
                continue
            if waiting.end <= confirmed:
                waiting.future.set_result(None)
            else:
                waiting.future.set_exception(StoreError(reason))

    async def finish(self) -> None:
        """Return once no put waits any more: those that are still not confirmed fail."""
        if self._flushing is not None:
            await asyncio.gather(self._flushing, return_exceptions=True)
        self.release("the store was closed before the message was confirmed")
        self._copies.finish()
        if self._expiry is not None:
            self._expiry.cancel()

    async def _flush(self) -> None:
        """Sync the log until all puts that wait are on the disk: one sync for many of them."""
        try:
            while any(waiting.end > self._core.log.flushed for waiting in self._waiting):
                # Whoever is about to put in this round of the loop gets into this sync.
                await asyncio.sleep(0)
                await self._sync()
                self.release()
            self.release()  # another sync may have been enough for all of them
        except BaseException as error:
            self.release(f"the sync ended: {type(error).__name__}: {error}")
            if not isinstance(error, Exception):
                raise
            self._core.flush_service.failed(error)
        finally:
            self._flushing = None

    @property
    def _patience(self) -> float:
        """Seconds that a put waits at most."""
        return self._settings.now.sync_flush_timeout / 1000

    def _expire(self) -> None:
        """Give up on puts that have waited too long; look again when the next one has."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        now, patience = self._loop.time(), self._patience
        for waiting in self._waiting:
            if waiting.future.done():
                continue
            if waiting.since + patience > now:
                self._expiry = self._loop.call_at(waiting.since + patience, self._expire)
                return
            waiting.future.set_exception(TimeoutError())
