"""The messages that were popped of one queue and are not finished (upstream: `PopProcessQueue`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.receipts import Receipt


class Popped(NamedTuple):
    """How a message was popped.

    Attributes:
        receipt: by which the broker knows it.
        until: when somebody else may get it, seconds.
        taken: when it was popped, and later when it was handed over, seconds.
    """

    receipt: Receipt
    until: float
    taken: float


class PoppedMessages:
    """What a consumer holds of a queue that it pops.

    Args:
        queue: which one; with the id -1, all queues of its broker.
        now: a clock in seconds.

    Attributes:
        is_dropped: it is not popped any more.
    """

    def __init__(self, queue: MessageQueue, now: Callable[[], float]) -> None:
        self.queue, self._now = queue, now
        self.is_dropped = False
        self._ready: deque[ConsumedMessage] = deque()
        self._popped: dict[ConsumedMessage, Popped] = {}

    @property
    def is_ready(self) -> bool:
        """Whether there is something to hand over."""
        return bool(self._ready) and not self.is_dropped

    def add(self, message: ConsumedMessage, popped: Popped) -> None:
        """Take in a message."""
        self._ready.append(message)
        self._popped[message] = popped

    def take(self, most: int) -> Sequence[ConsumedMessage]:
        """Hand over the next messages; not those that somebody else may have by now."""
        taken: list[ConsumedMessage] = []
        now = self._now()
        while self._ready and len(taken) < most:
            message = self._ready.popleft()
            popped = self._popped[message]
            if popped.until <= now:
                del self._popped[message]
                continue
            self._popped[message] = popped._replace(taken=now)
            taken.append(message)
        return taken

    def finish(self, message: ConsumedMessage) -> Popped | None:
        """Remove a message; return how it was popped, None if it is not held (any more)."""
        return self._popped.pop(message, None)

    def forget_expired(self) -> int:
        """Forget what was handed over and not finished in time: somebody else gets it.

        Returns:
            How many messages are held after that.
        """
        now, ready = self._now(), set(self._ready)
        for message, popped in list(self._popped.items()):
            if popped.until <= now and message not in ready:
                del self._popped[message]
        return len(self._popped)

    def drop(self) -> Sequence[tuple[ConsumedMessage, Popped]]:
        """Hand over nothing more; return what was not."""
        self.is_dropped = True
        waiting = [(message, self._popped.pop(message)) for message in self._ready]
        self._ready.clear()
        return waiting
