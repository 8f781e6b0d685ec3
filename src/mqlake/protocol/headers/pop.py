"""Headers of pop consumption.

Upstream: `PopMessageRequestHeader`, `AckMessageRequestHeader`, `ChangeInvisibleTimeRequestHeader`,
`NotificationRequestHeader`, `PollingInfoRequestHeader`, and their answers. Times are milliseconds.
"""

from __future__ import annotations

from mqlake.protocol.header import Header, Int32, Int64


class PopHeader(Header):
    """POP_MESSAGE.

    Attributes:
        queue_id: -1 for all queues.
        invisible_time: how long nobody else gets the messages.
        poll_time: how long the answer may wait for a message.
        born_time: when the client asked, by its clock; 0 if it does not say.
        init_mode: where a group begins that has no offset: 0 at the first message, 1 at the last.
        exp_type, exp: which messages are wanted.
        order: each queue in its order: nothing after what is not acknowledged.
        attempt_id: of an ordered pop; the same one again gets the same messages again.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    invisible_time: Int64
    poll_time: Int64
    init_mode: Int32
    born_time: Int64 = 0
    exp_type: str | None = None
    exp: str | None = None
    order: bool | None = None
    attempt_id: str | None = None


class PeekHeader(Header):
    """PEEK_MESSAGE: what a pop would return; `queue_id` is -1 for all queues."""

    consumer_group: str
    topic: str
    queue_id: Int32
    max_msg_nums: Int32


class PopAnswerHeader(Header):
    """What was popped; `mqlake.protocol.handles.receipts` has the texts.

    Attributes:
        revive_qid: queue of the revive topic, 999 for an ordered pop.
        rest_num: how many messages are left.
    """

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    rest_num: Int64
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class AckHeader(Header):
    """ACK_MESSAGE: a message was consumed; `extra_info` is its receipt.

    Attributes:
        lite_topic: the lite topic of the message, if it is one of a lite topic.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    lite_topic: str | None = None


class ChangeInvisibleTimeHeader(Header):
    """CHANGE_MESSAGE_INVISIBLETIME: a message comes again later, or sooner; 0 for now.

    Attributes:
        suspend: whether the redelivery is not counted.
        lite_topic: as for `AckHeader`.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    invisible_time: Int64
    suspend: bool | None = None
    lite_topic: str | None = None


class ChangeInvisibleTimeAnswerHeader(Header):
    """What the new receipt is made of."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32


class NotificationHeader(Header):
    """NOTIFICATION: tell when there is something to pop."""

    consumer_group: str
    topic: str
    queue_id: Int32
    poll_time: Int64
    born_time: Int64 = 0
    order: bool | None = None
    attempt_id: str | None = None


class NotificationAnswerHeader(Header):
    """Whether there is something to pop; `polling_full` where too many wait already."""

    has_msg: bool
    polling_full: bool = False


class PollingInfoHeader(Header):
    """POLLING_INFO: how many pops wait for messages."""

    consumer_group: str
    topic: str
    queue_id: Int32


class PollingInfoAnswerHeader(Header):
    """How many wait."""

    polling_num: Int32
