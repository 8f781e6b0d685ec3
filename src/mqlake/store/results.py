"""The results of queries."""

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
