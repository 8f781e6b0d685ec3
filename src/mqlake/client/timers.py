"""Work that is repeated while a client runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)


class Timer:
    """Runs a coroutine function at intervals, and sooner when it is woken.

    A function that raises is logged and called again: background work of a client never ends by
    itself.

    Args:
        name: for the log.
        first, every: seconds until the first call, and between two calls.
        least: the minimum of seconds between two calls, even if the timer is woken.
    """

    def __init__(
        self,
        name: str,
        function: Callable[[], Awaitable[object]],
        *,
        first: float,
        every: float,
        least: float = 0.0,
    ) -> None:
        self._name, self._function = name, function
        self._next, self._every, self._least = first, every, least
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Start."""
        self._is_stopped = False
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    def wake(self) -> None:
        """Make the next call now."""
        self._woken.set()

    def sooner(self, seconds: float) -> None:
        """Make the call after the running one in so many seconds, if not before."""
        self._next = min(self._next, seconds)

    async def stop(self) -> None:
        """Cancel the running call, and make no more."""
        self._is_stopped = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while not self._is_stopped:  # This holds even if the function swallows its cancellation.
            try:
                async with asyncio.timeout(self._next):
                    await self._woken.wait()
            except TimeoutError:
                pass
            self._woken.clear()
            self._next = self._every
            try:
                await self._function()
            except Exception:  # noqa: BLE001 (it is tried again)
                _log.exception("%s failed; it is tried again", self._name)
            if self._least:
                await asyncio.sleep(self._least)
