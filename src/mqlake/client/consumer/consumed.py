"""A message that a consumer has to finish."""

from __future__ import annotations

from typing import Protocol

from mqlake.client.message import ReceivedMessage


class Finisher(Protocol):
    """The consumer that has handed a message over."""

    async def ack(self, message: ConsumedMessage) -> bool:
        """Take note that it is done."""
        ...

    async def retry_later(self, message: ConsumedMessage, delay_level: int) -> bool:
        """Have it come again."""
        ...


class ConsumedMessage(ReceivedMessage, eq=False):
    """A message that was handed over, to be finished by `ack` or `retry_later`.

    Until then the group's offset does not pass it.
    """

    finisher: Finisher | None = None

    def message_count(self) -> int:
        """Return how many messages are handed over with it."""
        return 1

    async def ack(self) -> bool:
        """Say that it is done.

        Returns:
            False where that does not count: another consumer has the queue by now, and may have
            the message, too; or it was finished before.
        """
        return self.finisher is not None and await self.finisher.ack(self)

    async def retry_later(self, delay_level: int = 0) -> bool:
        """Have it come again: by the group's retry topic, or, in order, at the same place.

        Args:
            delay_level: of the broker's `messageDelayLevel`; 0 for one that grows with each time,
                below 0 for the dead-letter topic at once.

        Returns:
            False as `ack`.
        """
        return self.finisher is not None and await self.finisher.retry_later(self, delay_level)
