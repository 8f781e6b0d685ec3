"""Replicas on an event loop in a thread of its own, for programs that do other work meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from contextvars import copy_context
from typing import Self

from mqlake.errors import MqlakeError
from mqlake.metrics.metric import Sample
from mqlake.replica.metrics import samples
from mqlake.replica.options import ReplicaOptions
from mqlake.replica.replica import Replica

Held = Callable[[], int]


class ReplicaThread:
    """Replicas that run from entering to leaving.

    Args:
        replicas: what is copied, and what returns the physical offset from which on the copy is
            still needed.
        stop: set once one of them cannot continue.
        once: copy what the masters have now, and end.

    Attributes:
        failure: why a replica could not continue; None as long as all can.
    """

    def __init__(
        self, replicas: Mapping[ReplicaOptions, Held], stop: threading.Event, *, once: bool = False
    ) -> None:
        self._replicas, self._stop, self._once = replicas, stop, once
        # In this context, in which a program may watch the servers that are awaited.
        run = copy_context().run
        self._thread = threading.Thread(target=run, args=(self._run,), name="replicas")
        self._turn = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None  # while it runs what it is given
        self._told: asyncio.Event | None = None
        self._begun = threading.Event()
        self._running: list[Replica] = []
        self.failure: MqlakeError | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._begun.wait()
        return self

    def __exit__(self, *failure: object) -> None:
        with self._turn:
            if self._loop is not None and self._told is not None:
                self._loop.call_soon_threadsafe(self._told.set)
        self._thread.join()

    async def samples(self) -> Sequence[Sample]:
        """Return the metrics of the replicas; may be awaited on any event loop.

        Before they run, and after they have ended, the result is empty.
        """
        found = Future[Sequence[Sample]]()
        with self._turn:
            if self._loop is None:
                return ()
            self._loop.call_soon_threadsafe(self._answer, found)
        return await asyncio.wrap_future(found)

    def _answer(self, found: Future[Sequence[Sample]]) -> None:
        if found.set_running_or_notify_cancel():
            try:
                found.set_result(samples(self._running))
            except Exception as error:  # noqa: BLE001 (whoever asked gets it)
                found.set_exception(error)

    def wait(self) -> None:
        """Return once all have ended, or `stop` is set.

        Raises:
            MqlakeError: one of them could not continue.
        """
        while self._thread.is_alive() and not self._stop.is_set():
            self._thread.join(0.1)
        self.check()

    def check(self) -> None:
        """Raise the error of a replica that could not continue, if there is one."""
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            asyncio.run(self._copy())
        except MqlakeError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 (a thread that dies silently copies nothing)
            self._fail(MqlakeError(f"{type(error).__name__}: {error}"))
        finally:
            self._begun.set()

    def _fail(self, error: MqlakeError) -> None:
        self.failure = self.failure or error
        self._stop.set()

    async def _copy(self) -> None:
        self._told = asyncio.Event()
        with self._turn:
            self._loop = asyncio.get_running_loop()
        told = self._loop.create_task(self._told.wait())
        self._begun.set()
        try:
            await self._copy_until(told)
        finally:
            with self._turn:
                self._loop = None
            await asyncio.sleep(0)  # What was given to the loop before runs now.

    async def _copy_until(self, told: asyncio.Task[object]) -> None:
        async with AsyncExitStack() as undo:
            for options, held in self._replicas.items():
                self._running.append(await undo.enter_async_context(Replica(options, held)))
            running = self._running
            ends = [told, *(each.failed for each in running)]
            waiting = asyncio.gather(*(each.caught_up.wait() for each in running))
            try:
                await asyncio.wait(
                    [*ends, waiting] if self._once else ends, return_when="FIRST_COMPLETED"
                )
            finally:
                for task in (told, waiting):
                    task.cancel()
                await asyncio.gather(told, waiting, return_exceptions=True)
            for each in running:
                if each.failed.done():
                    self._fail(each.failed.result())
