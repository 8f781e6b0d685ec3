"""What brokers have answered, for a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Generic, NamedTuple, TypeVar

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

RENEWED: Final = 20.0
"""Seconds after which a value that is used is requested again. Nobody waits for that."""
AWAITED: Final = 60.0
"""Seconds after which a value is used only once it has been requested again."""
LASTS: Final = 600.0
"""Seconds for which a value is used while brokers do not answer."""
UNKNOWN: Final = 1.0
"""Seconds for which what does not exist is not requested again; neither is a doubted value."""
_MOST: Final = 20_000
_MOST_MISSING: Final = 2_000
"""Names that do not exist are kept by themselves: anybody may ask for any."""
_TRANSIENT: Final = frozenset(
    {ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE}
)

_log: Final = logging.getLogger("mqlake.proxy")

V = TypeVar("V")


class _RecentAnswer(NamedTuple, Generic[V]):
    at: float
    value: V


class RecentValues(Generic[V]):
    """Values by name, which are requested again after a while; None for what does not exist.

    Args:
        request: returns the value of a name. It raises RemotingError if the brokers refuse to
            answer, another MqlakeError if they do not.
    """

    def __init__(self, request: Callable[[str], Awaitable[V | None]]) -> None:
        self._request, self._now = request, asyncio.get_running_loop().time
        self._known: dict[str, _RecentAnswer[V]] = {}
        self._missing: dict[str, float] = {}
        self._running: dict[str, asyncio.Task[V | None]] = {}

    def known(self, name: str) -> V | None:
        """Return the value that was answered last, however old it is; None without one."""
        known = self._known.get(name)
        return None if known is None else known.value

    async def get(self, name: str, *, is_doubted: bool = False) -> V | None:
        """Return a value.

        Args:
            is_doubted: whether the known value seems to be outdated: then it is requested again if
                that was not done within the last second.
        """
        known, now = self._known.get(name), self._now()
        if known is None:
            asked = self._missing.get(name)
            if asked is not None and now < asked + UNKNOWN:
                return None
            return await asyncio.shield(self._requested(name))
        age = now - known.at
        if age < (UNKNOWN if is_doubted else RENEWED):
            return known.value
        task = self._requested(name)
        if age < AWAITED and not is_doubted:
            return known.value
        try:
            return await asyncio.shield(task)
        except RemotingError as error:
            if error.code not in _TRANSIENT or age > LASTS:
                raise
        except MqlakeError:
            if age > LASTS:
                raise
        return known.value

    def _requested(self, name: str) -> asyncio.Task[V | None]:
        """Request a value once, however many ask for it."""
        task = self._running.get(name)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._run(name))
            self._running[name] = task
            task.add_done_callback(lambda done: self._ended(name, done))
        return task

    async def _run(self, name: str) -> V | None:
        found = await self._request(name)
        self._known.pop(name, None)
        self._missing.pop(name, None)
        if found is None:
            while len(self._missing) >= _MOST_MISSING:
                del self._missing[next(iter(self._missing))]
            self._missing[name] = self._now()
        else:
            while len(self._known) >= _MOST:
                del self._known[next(iter(self._known))]
            self._known[name] = _RecentAnswer(self._now(), found)
        return found

    def _ended(self, name: str, task: asyncio.Task[V | None]) -> None:
        del self._running[name]
        if not task.cancelled() and (error := task.exception()) is not None:
            # Whoever waits for it reports it, if anybody does.
            _log.debug("%r is not requested: %s", name, error)

    async def close(self) -> None:
        """End what is running."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
