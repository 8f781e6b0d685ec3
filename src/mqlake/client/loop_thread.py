"""An event loop on a thread of its own, for callers without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

from mqlake.client.errors import ClosedError
from mqlake.storage.fork_guard import ForkGuard

T = TypeVar("T")


class LoopThread:
    """An event loop on a thread.

    Attributes:
        fork_guard: refuses work in a forked child, in which the thread does not exist.
    """

    def __init__(self, name: str) -> None:
        self.fork_guard = ForkGuard(name, kind="client", error=ClosedError)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns; it is cancelled if this thread is interrupted."""
        future = self.begin(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine; return its future.

        Raises:
            ClosedError: this process is a forked child.
        """
        if self.fork_guard.is_child:
            work.close()
            self.fork_guard.check()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, function: Callable[[], object]) -> None:
        """Schedule a function on the loop."""
        self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """Cancel what other threads still wait for, and end the thread.

        In a forked child this does nothing: the thread runs in the parent.
        """
        if self.fork_guard.is_child:
            return
        self.run(self._end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end_tasks(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # On this thread: the caller's may be inside a loop that runs, as in a notebook.
        await self._loop.shutdown_asyncgens()
