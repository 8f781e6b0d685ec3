"""Headers of a slave's requests to its master."""

from __future__ import annotations

from mqlake.protocol.header import Header, Int32


class AllTopicsHeader(Header):
    """GET_ALL_TOPIC_CONFIG; without any of the fields, all topics are answered.

    Attributes:
        topic_seq: how many topics are known already.
        max_topic_num: how many are to be answered.
        data_version: of those that are known, as JSON; "" for none.
        incarnations: whether the answer is to say which topics and groups were deleted. RocketMQ
            ignores it.
    """

    topic_seq: Int32 | None = None
    max_topic_num: Int32 | None = None
    data_version: str | None = None
    incarnations: bool | None = None


class AllGroupsHeader(Header):
    """GET_ALL_SUBSCRIPTIONGROUP_CONFIG; as `AllTopicsHeader`."""

    group_seq: Int32 | None = None
    max_group_num: Int32 | None = None
    data_version: str | None = None


class TablePartHeader(Header):
    """GET_ALL_CONSUMER_OFFSET, GET_ALL_MESSAGE_REQUEST_MODE; RocketMQ answers the whole table.

    Attributes:
        part: the number of the requested part; None for the whole table.
        parts: how many parts the table has, in the response to the first part; None in the request
            for that.
    """

    part: Int32 | None = None
    parts: Int32 | None = None
