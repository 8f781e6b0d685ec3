"""The responses that a connection waits for."""

from __future__ import annotations

import asyncio
from itertools import count

from mqlake.protocol.command import Command
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError

_LOOK = 0.05
"""Seconds between two checks for late responses: a timer for each request would cost a tenth of the
request.
"""
_LAST_OPAQUE = 2**31 - 1


class AwaitedResponses:
    """Numbers the requests of one connection, and passes each response to its request's sender."""

    __slots__ = ("_awaited", "_opaques", "_timer")

    def __init__(self) -> None:
        # With the time until which it is awaited.
        self._awaited: dict[int, tuple[asyncio.Future[Command], float]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._opaques = count(1)

    def next_opaque(self) -> int:
        """Return the number of the next request."""
        opaque = next(self._opaques)
        if opaque == _LAST_OPAQUE:
            self._opaques = count(1)
        return opaque

    def expect(
        self, loop: asyncio.AbstractEventLoop, opaque: int, seconds: float
    ) -> asyncio.Future[Command]:
        """Return a future for the response with an opaque, until `forget`.

        It ends with a RequestTimeoutError without a message if the response does not come in time,
        or with a ConnectionFailedError if the connection is lost.

        Args:
            seconds: the timeout; up to 50 ms more are possible.
        """
        future: asyncio.Future[Command] = loop.create_future()
        self._awaited[opaque] = future, loop.time() + seconds
        if self._timer is None:
            self._timer = loop.call_later(min(seconds, _LOOK), self._end_late_ones, loop)
        return future

    def forget(self, opaque: int) -> None:
        """Stop waiting for a response."""
        del self._awaited[opaque]

    def resolve(self, response: Command) -> None:
        """Pass a response on; one that nobody waits for is dropped."""
        found = self._awaited.get(response.opaque)
        if found is not None and not found[0].done():
            found[0].set_result(response)

    def fail(self, reason: str) -> None:
        """End all waiting, because the connection was lost."""
        for future, _ in self._awaited.values():
            if not future.done():
                future.set_exception(ConnectionFailedError(reason))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_late_ones(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for future, deadline in self._awaited.values():
            if deadline <= now and not future.done():
                future.set_exception(RequestTimeoutError())
        self._timer = loop.call_later(_LOOK, self._end_late_ones, loop) if self._awaited else None
