"""Close an object once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Closing:
    """Runs the closing of an object in a task of its own.

    It runs once, however many callers ask for it, and completes even if a caller is cancelled.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def run(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Close, or wait for a close that is already running.

        A listener that is called during the close may close the object, too, and does not wait for
        itself.
        """
        if self._task is not None and self._task is asyncio.current_task():
            return
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(close())
        await asyncio.shield(self._task)
