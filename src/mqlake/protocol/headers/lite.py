"""Headers of requests about lite topics.

Upstream: `PopLiteMessageRequestHeader`, `NotifyUnsubscribeLiteRequestHeader`, and those of
`LiteManagerProcessor`. Times are milliseconds.
"""

from __future__ import annotations

from mqlake.protocol.header import Header, Int32, Int64


class PopLiteHeader(Header):
    """POP_LITE_MESSAGE: messages of the lite topics that a client is subscribed to."""

    client_id: str
    consumer_group: str
    topic: str
    max_msg_num: Int32
    invisible_time: Int64
    poll_time: Int64
    born_time: Int64 = 0
    attempt_id: str | None = None


class PopLiteAnswerHeader(Header):
    """What was popped; `order_count_info` has, for each message, how often it was popped before."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class NotifyUnsubscribeLiteHeader(Header):
    """NOTIFY_UNSUBSCRIBE_LITE: a client is no longer subscribed to a lite topic."""

    lite_topic: str
    consumer_group: str
    client_id: str


class ParentTopicHeader(Header):
    """GET_PARENT_TOPIC_INFO."""

    topic: str


class LiteTopicHeader(Header):
    """GET_LITE_TOPIC_INFO."""

    parent_topic: str
    lite_topic: str


class LiteClientHeader(Header):
    """GET_LITE_CLIENT_INFO; at most `max_count` lite topics are returned."""

    parent_topic: str
    group: str
    client_id: str
    max_count: Int32 = 1000


class LiteGroupHeader(Header):
    """GET_LITE_GROUP_INFO: of one lite topic, or of the `top_k` with the most unread messages."""

    group: str
    lite_topic: str | None = None
    top_k: Int32 = 20


class TriggerLiteDispatchHeader(Header):
    """TRIGGER_LITE_DISPATCH: for one client, or for all of a group."""

    group: str
    client_id: str | None = None
