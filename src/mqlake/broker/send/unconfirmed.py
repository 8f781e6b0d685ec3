"""Sends whose messages are in the log, and that wait for the disk or for slaves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from mqlake.broker.runtime import BrokerRuntime

_PATIENCE: Final = 1.0
"""Seconds that a stop waits for the disk, so that sends are answered."""


class Unconfirmed:
    """Counts the sends of a broker that wait, and runs what answers them.

    Attributes:
        count: how many wait.
    """

    def __init__(self, runtime: BrokerRuntime) -> None:
        self._runtime, self._loop = runtime, asyncio.get_running_loop()
        self.count = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def room(self) -> int:
        """How many more sends may wait (`sendThreadPoolQueueCapacity`)."""
        return self._runtime.settings.send_thread_pool_queue_capacity - self.count

    def answer(self, count: int, answering: Coroutine[Any, Any, None]) -> None:
        """Run what waits for some sends, and answers them."""
        self.count += count
        task = self._loop.create_task(self._run(count, answering))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, count: int, answering: Coroutine[Any, Any, None]) -> None:
        try:
            await answering
        finally:
            self.count -= count

    async def finish(self) -> None:
        """Wait for a moment until all are answered."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_PATIENCE)
