"""Headers of requests for offsets of queues and of consumer groups.

Upstream: `QueryConsumerOffsetRequestHeader`, `UpdateConsumerOffsetRequestHeader`,
`GetMaxOffsetRequestHeader`, `SearchOffsetRequestHeader` and similar ones.
"""

from __future__ import annotations

from typing import Literal

from mqlake.protocol.header import Header, Int32, Int64, TopicRequest


class QueryConsumerOffsetHeader(TopicRequest):
    """QUERY_CONSUMER_OFFSET.

    Attributes:
        set_zero_if_not_found: if False, a group without an offset gets an error, not 0.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None


class UpdateConsumerOffsetHeader(TopicRequest):
    """UPDATE_CONSUMER_OFFSET."""

    consumer_group: str
    topic: str
    queue_id: Int32 | None = None
    commit_offset: Int64 | None = None


class QueueHeader(TopicRequest):
    """GET_MAX_OFFSET, GET_MIN_OFFSET, GET_EARLIEST_MSG_STORETIME: the queue."""

    topic: str
    queue_id: Int32


class SearchOffsetHeader(TopicRequest):
    """SEARCH_OFFSET_BY_TIMESTAMP.

    Attributes:
        timestamp: store time, milliseconds.
    """

    topic: str
    queue_id: Int32
    timestamp: Int64
    boundary_type: Literal["LOWER", "UPPER"] = "LOWER"


class OffsetHeader(Header):
    """The answer: an offset of a queue."""

    offset: Int64


class TimestampHeader(Header):
    """The answer: a store time in milliseconds, -1 without a message."""

    timestamp: Int64
