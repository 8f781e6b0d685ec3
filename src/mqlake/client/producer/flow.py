"""Limit how much a producer has in flight (upstream: `enableBackpressureForAsyncMode`)."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress


class FlowControl:
    """Limits the messages and bytes in flight; a caller that would exceed a limit waits.

    One message is always let through, however long it is.

    Attributes:
        count, bytes: what is in flight.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self.count = self.bytes = 0

    async def enter(self, size: int) -> None:
        """Reserve room for a message of so many bytes; wait until there is room."""
        if self._waiting or self._is_full(size):
            await self._turn(size)
        else:
            self._take(size)

    def leave(self, size: int) -> None:
        """Release the room of a message of so many bytes."""
        self.count -= 1
        self.bytes -= size
        if self._waiting or not self.count:
            self._admit()

    async def drained(self) -> None:
        """Return once nothing is in flight."""
        while self.count or self._waiting:  # Another send may have begun since the event was set.
            await self._idle.wait()

    async def _turn(self, size: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = size, turn
        self._waiting.append(place)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(size)
            else:
                with suppress(ValueError):
                    self._waiting.remove(place)
                self._admit()
            raise

    def _is_full(self, size: int) -> bool:
        if not self.count:
            return False
        return self.count >= self._most or self.bytes + size > self._most_bytes

    def _take(self, size: int) -> None:
        self.count += 1
        self.bytes += size
        self._idle.clear()

    def _admit(self) -> None:
        while self._waiting and not self._is_full(self._waiting[0][0]):
            size, turn = self._waiting.popleft()
            if turn.cancelled():
                continue
            self._take(size)
            turn.set_result(None)
        if not self.count and not self._waiting:
            self._idle.set()
