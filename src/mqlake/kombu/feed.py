"""One consumer of a channel, and the messages that wait for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from mqlake.kombu.border import Payload, VirtualMessage
from mqlake.kombu.session import ChannelConsumer
from mqlake.workqueue.deliveries import Delivery, log_failures


class Feed:
    """One consumer of a channel.

    Args:
        decode: returns the message of a payload; None if kombu cannot read it.
        callback: is called with each message.

    Attributes:
        subscription: the tasks that read for it, once started.
        waiting: messages that have arrived for it and were not delivered.
    """

    def __init__(
        self,
        decode: Callable[[Payload, Delivery | None], VirtualMessage | None],
        callback: Callable[[VirtualMessage], object],
    ) -> None:
        self._decode, self._callback = decode, callback
        self.subscription: ChannelConsumer | None = None
        self.waiting: deque[tuple[Payload, Delivery | None]] = deque()

    def deliver(self) -> bool:
        """Call the consumer with its next message; return whether it had one."""
        try:
            payload, delivery = self.waiting.popleft()
        except IndexError:
            return False  # The consumer was cancelled, and its messages given back.
        message = self._decode(payload, delivery)
        if message is not None:
            self._callback(message)
        return message is not None

    async def stop(self) -> None:
        """Stop reading, and give back messages that were not delivered."""
        if self.subscription is not None:
            self.subscription.stop()
        waiting = [delivery for _, delivery in self.waiting if delivery is not None]
        self.waiting.clear()
        backs = [delivery.give_back() for delivery in waiting]
        await log_failures(backs, "a message was not given back, and is redelivered later")
