"""A message that a consumer must finish."""

from __future__ import annotations

from typing import Protocol

from mqlake.client.message import ReceivedMessage


class Finisher(Protocol):
    """The consumer that handed a message over."""

    async def ack(self, message: ConsumedMessage) -> bool:
        """Note that a message is finished."""
        ...

    async def retry_later(self, message: ConsumedMessage, delay_level: int) -> bool:
        """Have a message redelivered."""
        ...


class ConsumedMessage(ReceivedMessage, eq=False):
    """A message that was handed over, to be finished by `ack` or `retry_later`.

    Until then, the group's offset does not pass the message.
    """

    finisher: Finisher | None = None

    def message_count(self) -> int:
        """Return how many messages are finished with it."""
        return 1

    async def ack(self) -> bool:
        """Acknowledge the message.

        Returns:
            False if the acknowledgement does not count: another consumer owns the queue now, and
            may receive the message, too; or the message was finished before.
        """
        return self.finisher is not None and await self.finisher.ack(self)

    async def retry_later(self, delay_level: int = 0) -> bool:
        """Have the message redelivered: through the group's retry topic or, in order, at the same
        position.

        Args:
            delay_level: of the broker's `messageDelayLevel`; 0 for a delay that grows with each
                redelivery, below 0 for the dead-letter topic at once.

        Returns:
            False as for `ack`.
        """
        return self.finisher is not None and await self.finisher.retry_later(self, delay_level)
