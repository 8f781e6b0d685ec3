"""Puts on an event loop that wait until slaves have them (docs/replication.md).

Upstream: `GroupTransferService`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from mqlake.store.append.put_result import PutError, PutResult, PutStatus
from mqlake.store.live_settings import Current
from mqlake.store.replication.copies import Copies
from mqlake.store.settings import StoreSettings


class _WaitingPut(NamedTuple):
    """A waiting put: the physical offset it waits for, and since when (loop time)."""

    end: int
    since: float
    future: asyncio.Future[None]


class CopiesAwaited:
    """The puts of one store that too few slaves have. For the tasks of its event loop."""

    def __init__(self, copies: Copies, settings: Current[StoreSettings]) -> None:
        self._copies, self._settings = copies, settings
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_WaitingPut] = deque()
        self._expiry: asyncio.TimerHandle | None = None
        copies.on_change(self.release)
        settings.on_change(self._settings_changed, "slave_timeout")
        settings.on_change(
            self.release,
            "in_sync_replicas",
            "min_in_sync_replicas",
            "enable_auto_in_sync_replicas",
            "broker_role",
        )

    async def wait(self, result: PutResult) -> None:
        """Return once enough slaves have an append.

        Raises:
            PutError: too few slaves are in sync, or they are late (`slaveTimeout`).
        """
        copies = self._copies
        if not copies.are_counted or result.end <= copies.confirmed:
            return
        if (missing := copies.missing) is not None:
            raise PutError(result.failed(PutStatus.SLAVE_NOT_AVAILABLE, missing))
        future = self._loop.create_future()
        self._waiting.append(_WaitingPut(result.end, self._loop.time(), future))
        if self._expiry is None:
            self._expiry = self._loop.call_at(self._loop.time() + self._patience, self._expire)
        try:
            await future
        except TimeoutError:
            needed, timeout = copies.needed, self._settings.now.slave_timeout
            reason = f"not on {needed} slaves after {timeout} ms"
            raise PutError(result.failed(PutStatus.FLUSH_SLAVE_TIMEOUT, reason)) from None

    def release(self) -> None:
        """Release the puts that enough slaves have now."""
        if not self._waiting:
            return
        confirmed = self._copies.confirmed
        while self._waiting and self._waiting[0].end <= confirmed:
            future = self._waiting.popleft().future
            if not future.done():
                future.set_result(None)

    def finish(self) -> None:
        """Release all puts; the store is closing."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        for waiting in self._waiting:
            if not waiting.future.done():
                waiting.future.set_exception(TimeoutError())
        self._waiting.clear()

    @property
    def _patience(self) -> float:
        return self._settings.now.slave_timeout / 1000

    def _settings_changed(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expire()

    def _expire(self) -> None:
        """Fail puts that have waited too long; schedule the next check."""
        self._expiry = None
        now, patience = self._loop.time(), self._patience
        while self._waiting:
            waiting = self._waiting[0]
            if not waiting.future.done():
                if waiting.since + patience > now:
                    self._expiry = self._loop.call_at(waiting.since + patience, self._expire)
                    return
                waiting.future.set_exception(TimeoutError())
            self._waiting.popleft()
