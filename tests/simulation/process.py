"""Simulated processes: what runs in the event loop belongs to one of them, and ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

CURRENT: ContextVar[Process | None] = ContextVar("process", default=None)
"""The process that runs now; None for the simulation itself."""


class Process:
    """One process on a machine. Tasks, timers and connections that it starts belong to it.

    Attributes:
        machine: the address of its machine.
        is_alive: once it is False, nothing of the process runs any more.
        is_doomed: it has passed the moment of its death within the callback that runs now: what
            it sends from here on reaches nobody.
        context: callbacks in this context belong to the process.
        remains: what a dead process has left behind. It is kept until the run is over, since code
            runs when coroutines are destroyed.
        died: done once it is dead.
    """

    def __init__(self, name: str, machine: str) -> None:
        self.name, self.machine = name, machine
        self.is_alive, self.is_doomed = True, False
        self.remains: list[object] = []
        self.died: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.context: Context = copy_context()
        self.context.run(CURRENT.set, self)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function as this process; tasks that it creates belong to the process."""
        return self.context.run(function)

    def create_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Return a task of this process."""
        return self.call(lambda: asyncio.get_running_loop().create_task(work))

    async def run(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something in this process; return once it is done, or the process dead."""
        task = self.create_task(work)
        await asyncio.wait((task, self.died), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
