"""The unfinished messages that were popped of one queue (upstream: `PopProcessQueue`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.handles.receipts import Receipt


class Popped(NamedTuple):
    """How a message was popped.

    Attributes:
        receipt: identifies the message to the broker.
        until: when another consumer may get it, in seconds.
        taken: when it was popped, and later when it was handed over, in seconds.
    """

    receipt: Receipt
    until: float
    taken: float


class PoppedMessages:
    """The messages that a consumer holds of a queue that it pops.

    Args:
        queue: the queue; with the id -1, all queues of its broker.
        now: a clock in seconds.

    Attributes:
        is_dropped: whether the queue is no longer popped.
    """

    def __init__(self, queue: MessageQueue, now: Callable[[], float]) -> None:
        self.queue, self._now = queue, now
        self.is_dropped = False
        self._ready: deque[ConsumedMessage] = deque()
        self._popped: dict[ConsumedMessage, Popped] = {}

    @property
    def is_ready(self) -> bool:
        """Return whether a message can be handed over."""
        return bool(self._ready) and not self.is_dropped

    def add(self, message: ConsumedMessage, popped: Popped) -> None:
        """Add a message."""
        self._ready.append(message)
        self._popped[message] = popped

    def take(self, most: int) -> Sequence[ConsumedMessage]:
        """Hand over the next messages, except those that another consumer may have by now."""
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
        """Remove a message; return how it was popped, None if the message is not held (any
        more).
        """
        return self._popped.pop(message, None)

    def forget_expired(self) -> int:
        """Forget messages that were not finished in time: another consumer gets them.

        Returns:
            Return how many messages are still held.
        """
        now, ready = self._now(), set(self._ready)
        for message, popped in list(self._popped.items()):
            if popped.until <= now and message not in ready:
                del self._popped[message]
        return len(self._popped)

    def drop(self) -> Sequence[tuple[ConsumedMessage, Popped]]:
        """Stop handing over messages; return those that were not handed over."""
        self.is_dropped = True
        waiting = [(message, self._popped.pop(message)) for message in self._ready]
        self._ready.clear()
        return waiting
