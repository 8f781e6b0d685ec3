"""An event loop whose time is simulated: it does not wait, and the same seed gives the same run."""

from __future__ import annotations

import asyncio
import heapq
import random
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextvars import Context
from itertools import count
from typing import TYPE_CHECKING, Any

from tests.simulation.process import CURRENT, Process

if TYPE_CHECKING:
    from tests.simulation.network import Network

MOST_EVENTS = 400_000
"""Callbacks of one run. More mean that something runs without an end."""
MOST_AT_ONCE = 20_000
"""Callbacks at one moment: more mean that something spins."""
_RESOLUTION = 1e-9
_SLOWEST_JOB = 0.004
"""Seconds that a job of an executor takes at most, as a rule."""


class SimulationError(Exception):
    """The run cannot go on: it is a violation by itself."""


class _NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address in memory.

    Attributes:
        process: the process that it belongs to.
    """

    number: int
    process: Process | None

    def __hash__(self) -> int:
        return self.number


class _NumberedFuture(asyncio.Future[Any]):
    """A future whose place in a set does not depend on its address in memory."""

    number: int
    process: Process | None

    def __hash__(self) -> int:
        return self.number


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs callbacks in their order, and sets its clock forward when there is nothing to run.

    Jobs of executors run in the loop itself, after a drawn time. Callbacks of a process that is
    dead do not run.

    Args:
        dice: draws how long jobs take.

    Attributes:
        events: callbacks so far.
        trace: a checksum over the times of all callbacks, and over what others `note`.
        network: makes connections; to be set before there is one.
        own_context: callbacks in this context belong to no process.
    """

    network: Network

    def __init__(self, dice: random.Random) -> None:
        super().__init__()
        self._dice, self._now, self._numbers = dice, 0.0, count(1)
        self._clock_resolution = _RESOLUTION
        self._at_once, self._spent = 0, 0.0
        self.events, self.trace = 0, 0
        self.own_context = Context()
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        """Return simulated seconds."""
        return self._now

    def perf_counter(self) -> float:
        """Return a time for measuring code: some microseconds more at each call, seldom many."""
        self._spent += 0.004 if self._dice.random() < 0.003 else 3e-6
        return self._now + self._spent

    def note(self, data: bytes) -> None:
        """Add something that happened to the trace."""
        self.trace = zlib.crc32(data, self.trace)

    def number(self) -> int:
        """Return a number that nothing else in this run has."""
        return next(self._numbers)

    # Tasks and futures

    def create_future(self) -> asyncio.Future[Any]:
        future = _NumberedFuture(loop=self)
        future.number, future.process = next(self._numbers), CURRENT.get()
        return future

    def _make_task(self, loop: SimulatedLoop, coro: Any, context: Any = None) -> asyncio.Task[Any]:
        task = _NumberedTask.__new__(_NumberedTask)
        task.number, task.process = next(self._numbers), CURRENT.get()
        task.__init__(coro, loop=loop, context=context)
        return task

    # One round

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        if not ready and not self._stopping:
            self._go_on()
        until = self._now + _RESOLUTION
        while scheduled and scheduled[0]._when < until:
            ready.append(heapq.heappop(scheduled))
        self._count(len(ready))
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                process = handle._context.get(CURRENT)
                if process is None or process.is_alive:
                    handle._run()

    def _go_on(self) -> None:
        """Set the clock to the time of the next callback that will run."""
        scheduled = self._scheduled
        while scheduled and not _will_run(scheduled[0]):
            heapq.heappop(scheduled)
        if not scheduled:
            raise SimulationError("nothing is left that could happen: somebody waits for ever")
        if scheduled[0]._when > self._now:
            self._now = scheduled[0]._when
            self._at_once = 0

    def _count(self, callbacks: int) -> None:
        self.events += callbacks
        self._at_once += callbacks
        self.trace = zlib.crc32(b"%.9f %d" % (self._now, callbacks), self.trace)
        if self._at_once > MOST_AT_ONCE:
            raise SimulationError(
                f"something spins: {self._at_once} callbacks at {self._now:.3f} s"
            )
        if self.events > MOST_EVENTS:
            raise SimulationError(f"no end after {self.events} callbacks, at {self._now:.3f} s")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: a cancelled timer is dropped when its time has come."""

    def _write_to_self(self) -> None:
        """Do nothing: there is one thread."""

    # Connections

    async def create_server(self, protocol_factory: Any, host: Any, port: Any, **_: Any) -> Any:
        return await self.network.listen(protocol_factory, host, port)

    async def create_connection(self, protocol_factory: Any, host: Any, port: Any) -> Any:
        return await self.network.connect(protocol_factory, host, port)

    # What is left

    def pending(self, process: Process) -> Iterator[asyncio.Handle]:
        """Yield the callbacks of a process that are still to run."""
        for handle in (*self._ready, *self._scheduled):
            if not handle._cancelled and handle._context.get(CURRENT) is process:
                yield handle

    def tasks(self, process: Process) -> list[asyncio.Task[Any]]:
        """Return the tasks of a process that are not done."""
        return [task for task in asyncio.all_tasks(self) if owner(task) is process]

    # Executors

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a job in the loop; what it does happens at once, between its begin and its end."""
        future = self.create_future()
        wait = self._dice.random() ** 3 * _SLOWEST_JOB
        if self._dice.random() < 0.01:
            wait *= 50
        share = self._dice.random()
        self.call_later(wait * share, self._run_job, future, func, args, wait * (1 - share))
        return future

    def _run_job(
        self,
        future: asyncio.Future[Any],
        func: Callable[..., Any],
        args: tuple[Any, ...],
        seconds: float,
    ) -> None:
        try:
            result = func(*args)
        except Exception as error:  # noqa: BLE001 (whoever waits for the job gets it)
            self.call_later(seconds, _fail, future, error)
        else:
            self.call_later(seconds, _finish, future, result)


def owner(future: object) -> Process | None:
    """Return the process that a task or a future belongs to, if that is known."""
    return getattr(future, "process", None)


def _will_run(handle: asyncio.TimerHandle) -> bool:
    if handle._cancelled:
        return False
    process = handle._context.get(CURRENT)
    return process is None or process.is_alive


def _finish(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
