"""The results of queries, and what a query may look at."""

from __future__ import annotations

import enum
from typing import NamedTuple

from mqlake.formats.record import Record


class Status(enum.StrEnum):
    """The status of a read from a queue offset: the names of RocketMQ's `GetMessageStatus`."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"


class QueueRange(NamedTuple):
    """The queue offsets of a queue: [min_offset, max_offset)."""

    min_offset: int
    max_offset: int


class GetResult(NamedTuple):
    """Messages of one queue, ascending, and where to continue."""

    status: Status
    next_offset: int
    min_offset: int
    max_offset: int
    records: list[Record]


class QueryResult(NamedTuple):
    """Messages that matched, and whether the limit cut off more."""

    records: list[Record]
    truncated: bool


class QueryBudget:
    """What a query may still look at; by default, everything.

    Args:
        entries: index entries; a record counts as 16 of them.
        size: bytes of the log, where the index lacks entries. The file in which they end is
            scanned to its end.
    """

    def __init__(self, entries: int = 1 << 62, size: int = 1 << 62) -> None:
        self.entries, self.size = entries, size
        self.is_exceeded = False
        """Whether something was not looked at."""

    def spend(self, entries: int) -> bool:
        """Return whether so many index entries may be looked at."""
        self.entries -= entries
        self.is_exceeded = self.is_exceeded or self.entries < 0
        return not self.is_exceeded

    def spend_bytes(self, size: int) -> None:
        """Note that so many bytes of the log were looked at."""
        self.size -= size

    def exceed(self) -> None:
        """Note that something is not looked at."""
        self.is_exceeded = True


class FoundOffsets(NamedTuple):
    """The result of a query.

    Attributes:
        offsets: physical offsets of the newest records that match, ascending.
        is_truncated: whether there are more, or may be: the budget was used up.
    """

    offsets: list[int]
    is_truncated: bool
