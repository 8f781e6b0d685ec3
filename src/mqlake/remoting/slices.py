"""Long work on the event loop, a slice at a time, so that all others are served in between.

A job is a generator that yields wherever others may be served. A request whose job is short is
answered at once. The rest of a longer job is done in the following rounds of the loop, in which all
jobs together get `ROUND` seconds, one after another.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from heapq import merge
from itertools import islice
from time import perf_counter
from typing import Any, Final, TypeVar

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.connection import Peer
from mqlake.remoting.shares import Shares, owner_of

_log: Final = logging.getLogger("mqlake.remoting")

ROUND: Final = 0.005
"""Seconds that all jobs together get in one round of the loop."""
TURN: Final = 0.002
"""Seconds that one job gets before the turn of the next one."""
AT_ONCE: Final = 4
"""Long requests processed concurrently; their partial results are held in memory."""
OF_ONE: Final = 256
"""Maximum waiting long requests of one connection."""
BODIES: Final = 64 << 20
"""Maximum bytes of the bodies of all waiting requests."""

_SORTED: Final = 2000
"""Names that are sorted in a single call."""
_MERGED: Final = 100

T = TypeVar("T")
Job = Generator[None, None, T]


class _Task:
    """A job and its caller; a job of the program itself has no peer."""

    __slots__ = ("future", "is_admitted", "is_kept", "job", "peer", "size")

    def __init__(self, job: Job[Any], peer: Peer | None, size: int, *, is_kept: bool) -> None:
        self.job, self.peer, self.size, self.is_kept = job, peer, size, is_kept
        self.future: asyncio.Future[Any] | None = None
        self.is_admitted = False


class Slices:
    """The jobs of one event loop.

    Args:
        capacity: returns the maximum of waiting long requests, and the name of the setting for it.
        percent: returns the share of one client's address, in percent (`Shares`).
    """

    def __init__(
        self, capacity: Callable[[], tuple[int, str]], percent: Callable[[], int] = lambda: 100
    ) -> None:
        self._capacity, self._shares = capacity, Shares(percent)
        self._loop = asyncio.get_running_loop()
        # Jobs that have not had a turn, jobs that have turns now, and jobs that wait for a place.
        self._fresh: deque[_Task] = deque()
        self._active: deque[_Task] = deque()
        self._queued: deque[_Task] = deque()
        self._admitted = 0
        # The jobs of each connection: its requests are served one after another.
        self._of: dict[Peer, deque[_Task]] = {}
        self._count = self._bytes = 0
        self._spent = 0.0
        self._is_scheduled = self._is_counting = self._is_fresh_next = False

    def __len__(self) -> int:
        """Return how many requests are not answered yet."""
        return self._count

    def serve(
        self, peer: Peer, job: Job[T], *, size: int = 0, is_kept: bool = False
    ) -> T | Coroutine[Any, Any, T]:
        """Return the result of a job, at once if it is short.

        Requests of one connection are served in their order, if all of them come here.

        Args:
            size: bytes that the request holds while it waits.
            is_kept: whether the job is completed even if the connection is closed meanwhile.

        Raises:
            RemotingError: too many requests wait.
        """
        task = _Task(job, peer, size, is_kept=is_kept)
        others = self._of.get(peer)
        if others is None and self._spent < ROUND:
            begin = perf_counter()
            self._count_round()
            try:
                while True:
                    next(job)
                    if perf_counter() - begin >= TURN:
                        break
            except StopIteration as stop:
                return stop.value
            finally:
                self._spent += perf_counter() - begin
        self._check(peer, others, size)
        self._shares.add(owner_of(peer.address))
        task.future = self._loop.create_future()
        self._count += 1
        self._bytes += size
        if others is None:
            self._of[peer] = deque((task,))
            self._fresh.append(task)
            self._schedule()
        else:
            others.append(task)
        return _result(task.future)

    def start(self, job: Job[object]) -> None:
        """Run a job of the program itself; log errors."""
        self._active.append(_Task(job, None, 0, is_kept=True))
        self._schedule()

    async def finish(self, job: Job[T]) -> T:
        """Run a job of the program itself; return its result."""
        task = _Task(job, None, 0, is_kept=True)
        task.future = self._loop.create_future()
        self._active.append(task)
        self._schedule()
        return await task.future

    def stop(self) -> None:
        """Stop all jobs where they are."""
        waiting = (task for tasks in self._of.values() for task in tasks)
        tasks = [*self._fresh, *self._active, *self._queued, *waiting]
        self._fresh.clear()
        self._active.clear()
        self._queued.clear()
        self._of.clear()
        for task in tasks:
            task.job.close()
            if task.future is not None and not task.future.done():
                task.future.cancel()

    def _check(self, peer: Peer, others: deque[_Task] | None, size: int) -> None:
        most, name = self._capacity()
        refusal = self._shares.refusal(owner_of(peer.address), self._count, most, name)
        if refusal is not None:
            reason = f"of the long requests that wait, {refusal}"
        elif others is not None and len(others) >= OF_ONE:
            reason = f"{OF_ONE} long requests of this connection wait already"
        elif self._bytes + size > BODIES and self._count:
            reason = f"long requests of {BODIES} bytes wait already"
        else:
            return
        raise RemotingError(
            ResponseCode.SERVICE_NOT_AVAILABLE, f"[TOO_MANY_LONG_REQUESTS]broker busy: {reason}"
        )

    # Turns

    def _count_round(self) -> None:
        """Start to count the seconds that this round of the loop has used."""
        if not self._is_counting:
            self._is_counting = True
            self._loop.call_soon(self._end_round)

    def _end_round(self) -> None:
        self._is_counting, self._spent = False, 0.0

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._round)

    def _round(self) -> None:
        self._is_scheduled = False
        end = perf_counter() + ROUND
        while (self._fresh or self._active) and (now := perf_counter()) < end:
            # They take turns, in the next round, too: one step of either may take as long as a
            # round.
            self._is_fresh_next = not self._is_fresh_next
            is_fresh = bool(self._fresh) and (self._is_fresh_next or not self._active)
            tasks = self._fresh if is_fresh else self._active
            self._turn(tasks.popleft(), now + TURN)
        if self._fresh or self._active:
            self._schedule()

    def _turn(self, task: _Task, until: float) -> None:
        """Continue a job for a moment."""
        if task.peer is not None and task.peer.is_closed and not task.is_kept:
            task.job.close()
            self._end(task, None)
            return
        job = task.job
        try:
            while True:
                next(job)
                if perf_counter() >= until:
                    break
        except StopIteration as stop:
            self._end(task, stop.value)
        except Exception as error:  # noqa: BLE001 (whatever a job raises is told to who waits)
            self._end(task, None, error)
        else:
            self._again(task)

    def _again(self, task: _Task) -> None:
        if task.peer is None or task.is_admitted:
            self._active.append(task)
        elif self._admitted < AT_ONCE:
            self._admit(task)
        else:
            self._queued.append(task)

    def _admit(self, task: _Task) -> None:
        task.is_admitted = True
        self._admitted += 1
        self._active.append(task)

    def _end(self, task: _Task, value: object, error: Exception | None = None) -> None:
        """Return the result to the caller of a job, and let the next job begin."""
        future = task.future
        if future is None:
            if error is not None:
                _log.error("a job of the event loop failed", exc_info=error)
        elif not future.done():
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)
        if task.peer is None:
            return
        self._count -= 1
        self._bytes -= task.size
        self._shares.add(owner_of(task.peer.address), -1)
        others = self._of[task.peer]
        others.popleft()
        if others:
            self._fresh.append(others[0])
        else:
            del self._of[task.peer]
        if task.is_admitted:
            self._admitted -= 1
            if self._queued:
                self._admit(self._queued.popleft())


def sort(names: Iterable[str]) -> Job[list[str]]:
    """Return names in order; sorting very many of them in a single call would take too long."""
    left, pieces = iter(names), list[list[str]]()
    while piece := list(islice(left, _SORTED)):
        pieces.append(sorted(piece))
        yield
    found: list[str] = []
    for name in merge(*pieces):
        found.append(name)
        if len(found) % _MERGED == 0:
            yield
    return found


def empty(table: dict[Any, Any]) -> Job[None]:
    """Remove the entries of a table: freeing very many of them in a single step takes too long."""
    while table:
        table.popitem()
        yield


def run_at_once(job: Job[T]) -> T:
    """Return the result of a job that is known to be short."""
    while True:
        try:
            next(job)
        except StopIteration as stop:
            return stop.value


async def _result(future: asyncio.Future[T]) -> T:
    return await future
