"""Dispatch what is confirmed, a turn at a time (docs/live-store.md, "How it works").

Upstream: `ReputMessageService`.
"""

from __future__ import annotations

from math import inf
from time import perf_counter
from typing import Final

from mqlake.errors import SyncError
from mqlake.metrics.histogram import Histogram
from mqlake.storage.clock import Clock
from mqlake.storage.fork_guard import ForkGuard
from mqlake.store.core.health import Health
from mqlake.store.core.live_files import LiveFiles
from mqlake.store.watermarks import Watermarks

LONGEST_TURN = 0.004
"""Seconds after which a tick leaves the rest to the next one, so that others are served: the first
messages to thousands of queues create thousands of files.
"""
_SIZES: Final = (1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536)
"""Messages."""


class Ticks:
    """The ticks of one store. For the store's thread.

    Attributes:
        last: the time of the last dispatch, milliseconds.
        sizes: how many messages each tick dispatched, of those that dispatched any.
    """

    def __init__(
        self,
        files: LiveFiles,
        watermarks: Watermarks,
        clock: Clock,
        health: Health,
        fork_guard: ForkGuard,
    ) -> None:
        self._log, self._dispatcher, self._watermarks = files.log, files.dispatcher, watermarks
        self._clock, self._health, self._fork_guard = clock, health, fork_guard
        self.last = clock.milliseconds()
        self.sizes = Histogram(_SIZES)

    def run(self, seconds: float = inf) -> bool:
        """Dispatch everything that is confirmed: see `OwnedStore.tick`."""
        self._fork_guard.check()
        return self._health.is_shut_down or self.dispatch(seconds)

    def dispatch(self, seconds: float = inf) -> bool:
        """Dispatch as `run` does, also after the store was shut down."""
        self.last = self._clock.milliseconds()
        health, is_over, before = self._health, True, self._dispatcher.count
        try:
            self._log.prepare_next()
            until = inf if seconds == inf else perf_counter() + seconds
            self._dispatcher.run(self._watermarks.confirmed, until)
            is_over = perf_counter() < until or self._is_dispatched
            health.dispatch_worked()
        except SyncError as error:
            health.fail(error)
        except Exception as error:  # noqa: BLE001 (whoever ticks goes on: a later tick may succeed)
            health.dispatch_failed(error)
        if size := self._dispatcher.count - before:
            self.sizes.add(size)
        health.update()
        return is_over

    @property
    def _is_dispatched(self) -> bool:
        return self._watermarks.dispatched >= self._watermarks.confirmed
