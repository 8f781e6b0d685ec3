"""Headers of pulling (upstream: `PullMessageRequestHeader`, `PullMessageResponseHeader`)."""

from __future__ import annotations

from mqlake.protocol.header import Header, Int32, Int64, TopicRequest

COMMITS_OFFSET = 1
"""Bit of a pull's system flag: `commit_offset` is to be committed."""
MAY_SUSPEND = 2
"""Bit of a pull's system flag: if there is no message, the answer may wait."""
HAS_SUBSCRIPTION = 4
"""Bit of a pull's system flag: the header says what the consumer subscribes to."""


class PullHeader(TopicRequest):
    """PULL_MESSAGE and LITE_PULL_MESSAGE.

    Attributes:
        queue_offset: of the first message that is wanted.
        commit_offset: the queue offset after the last message that was consumed.
        suspend_timeout_millis: how long the answer may wait for a message.
        subscription: an expression of the type `expression_type`.
        sub_version: of the subscription, as the consumer counts.
        max_msg_bytes: of all messages; without it the broker's limit.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32
    commit_offset: Int64
    suspend_timeout_millis: Int64
    sub_version: Int64
    subscription: str | None = None
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None
    request_source: Int32 | None = None


class PullAnswerHeader(Header):
    """The answer to a pull.

    Attributes:
        suggest_which_broker_id: of the brokers of one name, the one to pull from next.
        next_begin_offset: the queue offset to pull from next.
        min_offset, max_offset: of the queue.
        offset_delta: of a static topic: what is added to the queue offsets of the messages.
        forbidden_type: who forbids it, with NO_PERMISSION; a number of `ForbiddenType`.
    """

    suggest_which_broker_id: Int64 = 0
    next_begin_offset: Int64 = 0
    min_offset: Int64 = 0
    max_offset: Int64 = 0
    offset_delta: Int64 | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
    forbidden_type: Int32 | None = None
