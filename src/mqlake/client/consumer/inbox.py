"""From queues to whoever handles their messages."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from mqlake.client.consumer.consume_trace import ConsumeTrace
from mqlake.client.consumer.consumed import ConsumedMessage


class Source(Protocol):
    """The messages of one queue."""

    @property
    def is_ready(self) -> bool:
        """Whether there is something to hand over now."""
        ...

    def take(self, most: int) -> Sequence[ConsumedMessage]:
        """Hand over the next messages, if some are ready."""
        ...


S = TypeVar("S", bound=Source)


class Inbox(Generic[S]):
    """Hands over messages, queue after queue, so that no queue starves another.

    Args:
        trace: notes what was handed over.
    """

    def __init__(self, trace: ConsumeTrace | None = None) -> None:
        self._trace = trace
        self._queues: deque[S] = deque()
        self._queued: set[S] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closed = False

    def __len__(self) -> int:
        """Return how many queues may have something to hand over."""
        return len(self._queues)

    @property
    def is_closed(self) -> bool:
        """Whether nothing is handed over any more."""
        return self._is_closed

    def offer(self, held: S) -> None:
        """Say that a queue may have something to hand over."""
        if held not in self._queued and held.is_ready and not self._is_closed:
            self._queues.append(held)
            self._queued.add(held)
            self._wake()

    async def take(self, most: int) -> tuple[S, Sequence[ConsumedMessage]] | None:
        """Return the next messages of one queue; wait for some. None once it is closed."""
        while await self.wait():
            if (taken := self.take_ready(most)) is not None:
                return taken
        return None

    def take_ready(self, most: int) -> tuple[S, Sequence[ConsumedMessage]] | None:
        """Return the next messages of one queue; None if none are ready."""
        while self._queues:
            held = self._queues[0]
            messages = held.take(most)
            self._turn(held)
            if messages:
                if self._trace is not None:
                    self._trace.handed_over(messages)
                return held, messages
        return None

    async def wait(self) -> bool:
        """Wait until something may be ready, or it is closed; say whether it is still open.

        Whoever takes nothing after that calls `wake_another`.
        """
        while not self._queues and not self._is_closed:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                await waiting
            except asyncio.CancelledError:
                if waiting.done() and not waiting.cancelled():
                    self._wake()  # somebody else takes what this one was woken for
                raise
        return not self._is_closed

    def wake_another(self) -> None:
        """Wake somebody else who waits, for what this one was woken for."""
        if self._queues:
            self._wake()

    def close(self) -> None:
        """Hand over nothing any more."""
        self._is_closed = True
        self._queues.clear()
        self._queued.clear()
        while self._waiting:
            self._wake()

    def _turn(self, held: S) -> None:
        """Put the first queue behind the others, or away if it has nothing more to hand over."""
        if held.is_ready:
            self._queues.rotate(-1)
            self._wake()
        else:
            self._queues.popleft()
            self._queued.discard(held)

    def _wake(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return
