"""From queues to whoever handles their messages."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.queue_messages import QueueMessages


class Inbox:
    """Hands over messages, queue after queue, so that no queue starves another."""

    def __init__(self) -> None:
        self._queues: deque[QueueMessages] = deque()
        self._queued: set[QueueMessages] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether nothing is handed over any more."""
        return self._is_closed

    def offer(self, held: QueueMessages) -> None:
        """Say that a queue may have something to hand over."""
        if held.is_ready and held not in self._queued and not self._is_closed:
            self._queues.append(held)
            self._queued.add(held)
            self._wake()

    async def take(self, most: int) -> tuple[QueueMessages, Sequence[ConsumedMessage]] | None:
        """Return the next messages of one queue; wait for some. None once it is closed."""
        while not self._is_closed:
            while self._queues:
                held = self._queues.popleft()
                self._queued.discard(held)
                messages = held.take(most)
                self.offer(held)
                if messages:
                    return held, messages
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                await waiting
            except asyncio.CancelledError:
                if waiting.done() and not waiting.cancelled():
                    self._wake()  # somebody else takes what this one was woken for
                raise
        return None

    def close(self) -> None:
        """Hand over nothing any more."""
        self._is_closed = True
        self._queues.clear()
        self._queued.clear()
        while self._waiting:
            self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return
