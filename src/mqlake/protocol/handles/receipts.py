"""Receipts of popped messages, and the texts from which clients build them.

Upstream: `ExtraInfoUtil`. A client gives the receipt (`extraInfo`, property POP_CK) back when it
acknowledges the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.retry_topics import NORMAL, RETRY, RETRY_V2, mark_of

ORDERED = 999
"""In place of a revive queue: popped in order, nothing to be revived."""

_LEAST, _PARTS = 4, 8
_LONGEST = 2**61
_QUEUE_OFFSET = "qo"


class Receipt(NamedTuple):
    """Where a popped message is, and when it was popped.

    Attributes:
        start_offset: queue offset at which the pop began.
        pop_time, invisible_time: milliseconds.
        revive_queue_id: of the revive topic, ORDERED for none.
        mark: "0" for the topic itself, "1" or "2" for a retry topic.
    """

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_queue_id: int
    mark: str = NORMAL
    broker_name: str = ""
    queue_id: int = 0
    queue_offset: int = 0

    @property
    def text(self) -> str:
        """Return the receipt as clients keep it."""
        return " ".join(map(str, self))

    @property
    def is_ordered(self) -> bool:
        """Return whether the message was popped in order."""
        return self.revive_queue_id == ORDERED


def parse_receipt(text: str, revive_queues: int) -> Receipt:
    """Return the receipt that a client gives back.

    Words after the eighth are ignored, as upstream ignores them: RocketMQ's proxy appends the
    message's physical offset.

    Args:
        text: at least the first four words of a receipt.
        revive_queues: how many queues the revive topic has.

    Raises:
        RemotingError: INVALID_PARAMETER: the text is not a receipt.
    """
    parts = text.split(" ", _PARTS)[:_PARTS]
    numbers = [*parts[:_LEAST], *parts[6:_PARTS]]
    if len(parts) < _LEAST or not _are_numbers(numbers):
        raise _no_receipt(text)
    start, popped, invisible, revive, *where = map(int, numbers)
    mark, broker = [*parts[_LEAST:6], *(NORMAL, "")[len(parts[_LEAST:6]) :]]
    queue_id, queue_offset = [*where, 0, 0][:2]
    found = Receipt(
        start, popped, invisible, revive, mark, broker, queue_id=queue_id, queue_offset=queue_offset
    )
    check_receipt(found, revive_queues)
    return found


def check_receipt(receipt: Receipt, revive_queues: int) -> None:
    """Refuse a receipt that this broker cannot have given.

    Raises:
        RemotingError: INVALID_PARAMETER.
    """
    is_known = 0 <= receipt.revive_queue_id < revive_queues or receipt.is_ordered
    numbers = receipt.start_offset, receipt.pop_time, receipt.invisible_time
    is_fit = min(numbers) >= 0 and max(numbers) < _LONGEST
    if not is_known or not is_fit or receipt.mark not in (NORMAL, RETRY, RETRY_V2):
        raise _no_receipt(receipt.text)


def _are_numbers(words: Sequence[str]) -> bool:
    digits = "".join(words)
    return digits.isascii() and digits.isdigit() and all(words) and len(max(words, key=len)) < 20


def _no_receipt(text: str) -> RemotingError:
    return RemotingError(ResponseCode.INVALID_PARAMETER, f"not a receipt: {text[:100]!r}")


class PopInfo:
    """What a pop's answer says of each queue that it read, as texts."""

    def __init__(self) -> None:
        self._starts: list[str] = []
        self._offsets: list[str] = []
        self._counts: list[str] = []

    def add(self, topic: str, queue_id: int, start: int, offsets: Sequence[int]) -> None:
        """Say where in a queue the pop began, and which messages it has. Once a queue."""
        mark = mark_of(topic)
        self._starts.append(f"{mark} {queue_id} {start}")
        self._offsets.append(f"{mark} {queue_id} {','.join(map(str, offsets))}")

    def add_counts(
        self, topic: str, queue_id: int, counts: Iterable[tuple[int, int]], least: int
    ) -> None:
        """Say how often messages of a queue offset were popped before; `least` of all of them."""
        mark = mark_of(topic)
        for queue_offset, count in counts:
            self._counts.append(f"{mark} {_QUEUE_OFFSET}{queue_id}%{queue_offset} {count}")
        self._counts.append(f"{mark} {queue_id} {least}")

    @property
    def start_offset_info(self) -> str:
        """Return where the pop began."""
        return ";".join(self._starts)

    @property
    def msg_offset_info(self) -> str:
        """Return which messages it has."""
        return ";".join(self._offsets)

    @property
    def order_count_info(self) -> str:
        """Return how often they were popped before."""
        return ";".join(self._counts)
