"""Turns: connections are served for a moment each, so that none blocks the event loop.

In one round of the loop, all connections together are served for `ROUND` seconds, each for `TURN`
seconds before the next one that waits. A connection with more to serve is then not read further,
and waits for another turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter
from typing import Final, Protocol

ROUND: Final = 0.005
"""Seconds of a round of the loop in which requests are started."""
TURN: Final = 0.001
"""Seconds that one connection is served while others wait."""
_IDLE: Final = 0.1
"""Seconds after which the last timed round is certainly over."""


class TurnTaker(Protocol):
    """A connection that has turns."""

    def serve(self, until: float) -> bool:
        """Serve requests until a time of `perf_counter`; return whether there are more."""
        ...


class Turns:
    """Decides which connection is served when.

    Attributes:
        waiting: the connections that wait for a turn, in order.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.waiting: deque[TurnTaker] = deque()
        self._end = 0.0
        self._is_scheduled = False

    def take(self, served: TurnTaker) -> bool:
        """Serve a connection from which data arrived; return whether it waits for a turn now."""
        if self.enter_round() and not served.serve(self._end):
            return False
        self.wait(served)
        return True

    def enter_round(self) -> bool:
        """Begin a round if none runs; return whether it has time for a connection from which data
        arrived.
        """
        if self.waiting:
            return False
        now = perf_counter()
        if now - self._end > _IDLE:
            self._end = now + ROUND
        # Time that has passed may have been used by this round: the next one begins with more.
        return now < self._end

    def wait(self, served: TurnTaker) -> None:
        """Serve a connection when its turn comes."""
        self.waiting.append(served)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._next_round)

    def _next_round(self) -> None:
        self._is_scheduled = False
        waiting, now = self.waiting, perf_counter()
        end = self._end = now + ROUND
        while waiting and now < end:
            served = waiting.popleft()
            if served.serve(min(now + TURN, end) if waiting else end):
                waiting.append(served)
            now = perf_counter()
        if waiting:
            self._schedule()
