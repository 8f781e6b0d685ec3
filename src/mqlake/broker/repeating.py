"""What a broker does by the clock, on its event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

_log = logging.getLogger(__name__)


class Repeating:
    """Functions that are called again and again until the broker stops."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timers: dict[Callable[[], object], asyncio.TimerHandle] = {}

    def every(self, seconds: float, function: Callable[[], object]) -> None:
        """Call a function in this interval; what it raises is logged, and the next call comes."""

        def call() -> None:
            self._timers[function] = self._loop.call_later(seconds, call)
            try:
                function()
            except Exception:  # noqa: BLE001 — one that fails does not end the others
                _log.exception("%s failed", function.__qualname__)

        self._timers[function] = self._loop.call_later(seconds, call)

    def stop(self) -> None:
        """Call none of them any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
