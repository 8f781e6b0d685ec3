"""Work that the service does beside calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from mqlake.client.timers import Timer

_log: Final = logging.getLogger("mqlake.proxy")


class Background:
    """Tasks that no call waits for. One that fails is logged, and never ends silently."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self._timers: list[Timer] = []

    def start(self, work: Coroutine[Any, Any, object], name: str) -> asyncio.Task[object]:
        """Run a coroutine.

        Args:
            name: what it does, for the log.
        """
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def repeat(self, name: str, function: Callable[[], Awaitable[object]], every: float) -> None:
        """Call a coroutine function every so many seconds, even if a call fails."""
        timer = Timer(name, function, first=every, every=every)
        timer.start()
        self._timers.append(timer)

    async def stop(self, grace: float) -> None:
        """Let running tasks end, and cancel those that have not ended after `grace` seconds."""
        for timer in self._timers:
            await timer.stop()
        loop = asyncio.get_running_loop()
        end = loop.time() + grace
        while self._tasks and (left := end - loop.time()) > 0:
            await asyncio.wait(list(self._tasks), timeout=left)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed", task.get_name(), exc_info=error)
