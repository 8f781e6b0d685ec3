"""Pass messages from queues to the handlers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from mqlake.client.consumer.consume_trace import ConsumeTrace
from mqlake.client.consumer.consumed import ConsumedMessage


class InboxQueue(Protocol):
    """The messages of one queue."""

    @property
    def is_ready(self) -> bool:
        """Return whether a message can be handed over now."""
        ...

    def take(self, most: int) -> Sequence[ConsumedMessage]:
        """Hand over the next messages, if any are ready."""
        ...


S = TypeVar("S", bound=InboxQueue)


class Inbox(Generic[S]):
    """Hands over messages, queue after queue, so that no queue starves another.

    Args:
        trace: records what was handed over.
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
        """Return whether the inbox is closed."""
        return self._is_closed

    def offer(self, held: S) -> None:
        """Note that a queue may have something to hand over."""
        if held not in self._queued and held.is_ready and not self._is_closed:
            self._queues.append(held)
            self._queued.add(held)
            self._wake()

    async def take(self, most: int) -> tuple[S, Sequence[ConsumedMessage]] | None:
        """Return the next messages of one queue, waiting for them if necessary. None once the inbox
        is closed.
        """
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
        """Wait until something may be ready, or the inbox is closed; return whether it is still
        open.

        A caller that then takes nothing calls `wake_another`.
        """
        while not self._queues and not self._is_closed:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                await waiting
            except asyncio.CancelledError:
                if waiting.done() and not waiting.cancelled():
                    self._wake()  # Another caller takes what this one was woken for.
                raise
        return not self._is_closed

    def wake_another(self) -> None:
        """Wake another waiting caller for what this one was woken for."""
        if self._queues:
            self._wake()

    def close(self) -> None:
        """Stop handing over messages."""
        self._is_closed = True
        self._queues.clear()
        self._queued.clear()
        while self._waiting:
            self._wake()

    def _turn(self, held: S) -> None:
        """Move the first queue to the end, or remove it if it has nothing more to hand over."""
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
