"""The responses that a connection waits for."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from mqlake.protocol.command import Command
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError

_LOOK = 0.05
"""Seconds between two looks at what is late: a timer for each request would take a tenth of it."""


class _Awaited(NamedTuple):
    future: asyncio.Future[Command]
    deadline: float
    reason: str


class AwaitedResponses:
    """Gives each response to whoever sent its request."""

    __slots__ = ("_awaited", "_timer")

    def __init__(self) -> None:
        self._awaited: dict[int, _Awaited] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def wait(
        self, loop: asyncio.AbstractEventLoop, opaque: int, seconds: float, reason: str
    ) -> Command:
        """Return the response with an opaque.

        Args:
            seconds: how long it may take; up to 50 ms more are possible.
            reason: the message of the error if it takes longer.

        Raises:
            RequestTimeoutError: it did not come in time.
            ConnectionFailedError: the connection was lost.
        """
        future: asyncio.Future[Command] = loop.create_future()
        self._awaited[opaque] = _Awaited(future, loop.time() + seconds, reason)
        if self._timer is None:
            self._timer = loop.call_later(min(seconds, _LOOK), self._end_late_ones, loop)
        try:
            return await future
        finally:
            del self._awaited[opaque]

    def resolve(self, response: Command) -> None:
        """Pass a response on; one that nobody waits for is dropped."""
        found = self._awaited.get(response.opaque)
        if found is not None and not found.future.done():
            found.future.set_result(response)

    def fail(self, reason: str) -> None:
        """End all waiting: the connection was lost."""
        for each in self._awaited.values():
            if not each.future.done():
                each.future.set_exception(ConnectionFailedError(reason))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_late_ones(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for future, deadline, reason in self._awaited.values():
            if deadline <= now and not future.done():
                future.set_exception(RequestTimeoutError(reason))
        self._timer = loop.call_later(_LOOK, self._end_late_ones, loop) if self._awaited else None
