"""Headers of sending, and of giving a message back.

Upstream: `SendMessageRequestHeader`, `SendMessageRequestHeaderV2`, `SendMessageResponseHeader`,
`ConsumerSendMsgBackRequestHeader`.
"""

from __future__ import annotations

import msgspec

from mqlake.protocol.header import Header, Int32, Int64


class SendMessageHeader(Header):
    """SEND_MESSAGE.

    Attributes:
        default_topic: the topic to make a missing one after.
        default_topic_queue_nums: queues of a topic that is made.
        queue_id: below 0 for any.
        properties: as a record holds them.
        max_reconsume_times: to a retry topic: above this, the message is dead.
        lo: False: the queue of a static topic is the broker's own, not a logic queue.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int32 | None = None
    batch: bool | None = None
    lo: bool | None = None


class SendMessageHeaderV2(
    Header,
    rename={
        "producer_group": "a",
        "topic": "b",
        "default_topic": "c",
        "default_topic_queue_nums": "d",
        "queue_id": "e",
        "sys_flag": "f",
        "born_timestamp": "g",
        "flag": "h",
        "properties": "i",
        "reconsume_times": "j",
        "unit_mode": "k",
        "max_reconsume_times": "l",
        "batch": "m",
    },
):
    """SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE: `SendMessageHeader` under names of one letter."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int32 | None = None
    batch: bool | None = None
    lo: bool | None = None


class SendMessageResponseHeader(Header):
    """Where a message was put.

    Attributes:
        msg_id: the offset message id; of a batch all of them, joined by commas.
        transaction_id: the unique key.
        recall_handle: what takes the message back before its delivery time.
        region: of the broker.
        trace_on: whether the broker wants message traces.
        batch_unique_key: of a batch that is stored as one record.
    """

    msg_id: str
    queue_id: Int32
    queue_offset: Int64
    transaction_id: str | None = None
    recall_handle: str | None = None
    region: str | None = msgspec.field(default=None, name="MSG_REGION")
    trace_on: bool | None = msgspec.field(default=None, name="TRACE_ON")
    batch_unique_key: str | None = msgspec.field(default=None, name="batchUniqId")


class SendBackHeader(Header):
    """CONSUMER_SEND_MSG_BACK.

    Attributes:
        offset: physical offset of the message.
        delay_level: below 0 for the dead-letter topic, 0 for a level that grows with each return.
    """

    offset: Int64
    group: str
    delay_level: Int32
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None
