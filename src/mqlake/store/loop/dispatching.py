"""Dispatch on an event loop: soon after a put, a turn at a time (docs/live-store.md).

Upstream: `ReputMessageService`.
"""

from __future__ import annotations

import asyncio

from mqlake.metrics.histogram import Histogram
from mqlake.store.core.ticks import LONGEST_TURN
from mqlake.store.loop.log_growth import LogGrowth
from mqlake.store.owned_store import OwnedStore
from mqlake.store.services import LOADED_TICK, MANY_RECEIVED, RECEIVED_TICK, TICK


class Dispatching:
    """Decides when a store dispatches. For the tasks of one event loop.

    Args:
        growth: is notified after each append and each turn.
    """

    def __init__(self, core: OwnedStore, growth: LogGrowth) -> None:
        self._core, self._growth = core, growth
        self._watermarks = core.watermarks
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def count(self) -> int:
        """How many messages were dispatched since the start."""
        return self._core.dispatcher.count

    @property
    def sizes(self) -> Histogram:
        """How many messages each turn dispatched since the start, of those that dispatched any."""
        return self._core.ticks.sizes

    def soon(self) -> None:
        """Dispatch what was appended just now, with what is appended in the next milliseconds."""
        if self._timer is None:
            since = (self._core.clock.milliseconds() - self._core.ticks.last) / 1000
            is_loaded = since < LOADED_TICK
            self._timer = self._loop.call_later(LOADED_TICK if is_loaded else TICK, self._turn)
        self._growth.tell()

    def received(self, size: int) -> None:
        """Dispatch soon so many bytes that a master has sent."""
        if size >= MANY_RECEIVED and self._timer is None:
            self._timer = self._loop.call_later(RECEIVED_TICK, self._turn)
        self.soon()

    def _turn(self) -> None:
        self._timer = None
        self.now()

    def now(self) -> None:
        """Dispatch for one turn, and the rest after requests have been served in between."""
        if not self._core.tick(LONGEST_TURN) and self._timer is None:
            self._timer = self._loop.call_later(0, self._turn)
        self._growth.tell()

    def catch_up(self) -> bool:
        """Dispatch what is confirmed now, and not at the next tick; return whether there was any.

        Messages are acknowledged some milliseconds before they have their queue and index entries.
        What takes longer than one turn is left to the next tick.
        """
        if self._watermarks.dispatched >= self._watermarks.confirmed:
            return False
        self.now()
        return True

    def cancel(self) -> None:
        """Take no more turns."""
        if self._timer is not None:
            self._timer.cancel()
