"""Header of PUSH_REPLY_MESSAGE_TO_CLIENT (upstream: `ReplyMessageRequestHeader`)."""

from __future__ import annotations

from mqlake.protocol.header import Header, Int32, Int64


class ReplyMessageHeader(Header):
    """A reply, on its way to the client that waits for it.

    Attributes:
        born_host, store_host: "address:port".
        properties: as a record holds them.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    born_host: str
    store_host: str
    store_timestamp: Int64
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = None
