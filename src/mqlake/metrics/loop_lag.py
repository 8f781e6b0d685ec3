"""How late an event loop runs what is due."""

from __future__ import annotations

import asyncio
from typing import Final

from mqlake.metrics.metric import gauge

LOOP_LAG = gauge(
    "mqlake_event_loop_lag",
    "Longest delay of a due callback since the last scrape or export.",
    "seconds",
)
INTERVAL: Final = 0.1
"""Seconds between two measurements."""


class LoopLag:
    """Measures how late an event loop calls a timer, from the creation on.

    A callback that holds the loop for a second delays one timer by up to a second.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._longest = 0.0
        self._wait()

    def take(self) -> float:
        """Return the longest delay in seconds since the last call."""
        longest, self._longest = self._longest, 0.0
        return max(longest, self._loop.time() - self._due)

    def stop(self) -> None:
        """Stop measuring."""
        self._timer.cancel()

    def _wait(self) -> None:
        self._due = self._loop.time() + INTERVAL
        self._timer = self._loop.call_at(self._due, self._measure)

    def _measure(self) -> None:
        self._longest = max(self._longest, self._loop.time() - self._due)
        self._wait()
