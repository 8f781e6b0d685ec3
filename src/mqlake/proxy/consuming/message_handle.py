"""Receipt handles of messages that a client received through the proxy.

Upstream: `ReceiptHandle`. A handle is the receipt of the pop, and as a ninth word the physical
offset of the message, which a dead letter needs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mqlake.protocol.errors import RemotingError
from mqlake.protocol.handles.receipts import Receipt, parse_receipt
from mqlake.protocol.retry_topics import marked

_WORDS: Final = 8
_LONGEST: Final = 2048
"""Characters: more than the longest broker name takes."""
_ANY_REVIVE_QUEUE: Final = 1 << 31
_LONGEST_NUMBER: Final = 18
UNKNOWN_OFFSET: Final = -1


class HandleFormatError(Exception):
    """A text is not a receipt handle."""


class MessageHandle(NamedTuple):
    """Identifies one delivery of a message.

    Attributes:
        receipt: the receipt by which its broker knows the message.
        physical_offset: its position in the commit log, UNKNOWN_OFFSET if the handle lacks it.
    """

    receipt: Receipt
    physical_offset: int = UNKNOWN_OFFSET

    @property
    def text(self) -> str:
        """Return the handle as clients keep it."""
        if self.physical_offset == UNKNOWN_OFFSET:
            return self.receipt.text
        return f"{self.receipt.text} {self.physical_offset}"

    @property
    def visible_at(self) -> int:
        """Return when the message becomes visible again, in milliseconds since 1970."""
        return self.receipt.pop_time + self.receipt.invisible_time

    def is_expired(self, now: int) -> bool:
        """Return whether the message is visible again.

        Args:
            now: milliseconds since 1970.
        """
        return self.visible_at <= now

    def real_topic(self, topic: str, group: str) -> str:
        """Return the topic that the message is in: the topic itself, or a retry topic of it."""
        return marked(self.receipt.mark, topic, group)


def parse_handle(text: str) -> MessageHandle:
    """Return the handle that a client gives back.

    Raises:
        HandleFormatError: the text is not a handle.
    """
    words = text.split(" ") if len(text) <= _LONGEST else []
    if len(words) < _WORDS:
        raise HandleFormatError(f"not a receipt handle: {text[:100]!r}")
    try:
        receipt = parse_receipt(" ".join(words[:_WORDS]), _ANY_REVIVE_QUEUE)
    except RemotingError:
        raise HandleFormatError(f"not a receipt handle: {text[:100]!r}") from None
    offset = words[_WORDS] if len(words) > _WORDS else ""
    is_number = offset.isascii() and offset.isdigit() and len(offset) <= _LONGEST_NUMBER
    return MessageHandle(receipt, int(offset) if is_number else UNKNOWN_OFFSET)
