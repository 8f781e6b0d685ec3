"""Bodies of requests and answers about lite topics."""

from __future__ import annotations

import msgspec


class LiteOffsetOption(msgspec.Struct, frozen=True, rename="camel"):
    """Where a group begins: type POLICY (0 last, 1 min, 2 max), OFFSET, TAIL_N or TIMESTAMP."""

    type: str = "POLICY"
    value: int = 0


class LiteSubscriptionChange(msgspec.Struct, frozen=True, rename="camel"):
    """A change of a client's subscriptions (upstream: `LiteSubscriptionDTO`).

    Attributes:
        action: PARTIAL_ADD, PARTIAL_REMOVE, COMPLETE_ADD or COMPLETE_REMOVE.
    """

    action: str = ""
    client_id: str = ""
    group: str = ""
    topic: str = ""
    lite_topic_set: list[str] = []
    offset_option: LiteOffsetOption | None = None
    version: int = 0


class LiteSubscriptionChanges(msgspec.Struct, frozen=True, rename="camel"):
    """The body of LITE_SUBSCRIPTION_CTL."""

    subscription_set: list[LiteSubscriptionChange] = []


class BrokerLiteInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to GET_BROKER_LITE_INFO; `topic_meta` has minutes, -1 for never."""

    store_type: str = ""
    max_lmq_num: int = 0
    current_lmq_num: int = 0
    lite_subscription_count: int = 0
    order_info_count: int = 0
    cq_table_size: int = 0
    offset_table_size: int = 0
    event_map_size: int = 0
    topic_meta: dict[str, int] = {}
    group_meta: dict[str, list[str]] = {}


class ParentTopicInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to GET_PARENT_TOPIC_INFO; `ttl` in minutes, -1 for never."""

    topic: str = ""
    ttl: int = -1
    groups: list[str] | None = None
    lmq_num: int = 0
    lite_topic_count: int = 0


class LiteSubscriber(msgspec.Struct, frozen=True, rename="camel"):
    """A client of a group that is subscribed to a lite topic."""

    client_id: str = ""
    group: str = ""


class LiteTopicOffset(msgspec.Struct, frozen=True, rename="camel"):
    """The offsets of a lite topic."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


class LiteTopicInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to GET_LITE_TOPIC_INFO."""

    parent_topic: str = ""
    lite_topic: str = ""
    subscriber: list[LiteSubscriber] = []
    topic_offset: LiteTopicOffset = LiteTopicOffset()
    sharding_to_broker: bool = True


class LiteClientInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to GET_LITE_CLIENT_INFO; a count of -1 if the client is unknown."""

    parent_topic: str = ""
    group: str = ""
    client_id: str = ""
    last_access_time: int = -1
    last_consume_time: int = 0
    lite_topic_count: int = -1
    lite_topic_set: list[str] | None = None


class LiteLag(msgspec.Struct, frozen=True, rename="camel"):
    """How much of a lite topic a group has not consumed."""

    lite_topic: str = ""
    lag_count: int = 0
    earliest_unconsumed_timestamp: int = -1


class LiteOffsets(msgspec.Struct, frozen=True, rename="camel"):
    """The offsets of a lite topic and of a group in it."""

    broker_offset: int = 0
    consumer_offset: int = 0
    pull_offset: int = 0
    last_timestamp: int = 0


class LiteGroupInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to GET_LITE_GROUP_INFO."""

    group: str = ""
    parent_topic: str = ""
    lite_topic: str | None = None
    earliest_unconsumed_timestamp: int = -1
    total_lag_count: int = 0
    lite_topic_offset_wrapper: LiteOffsets | None = None
    lag_count_top_k: list[LiteLag] | None = msgspec.field(default=None, name="lagCountTopK")
    lag_timestamp_top_k: list[LiteLag] | None = msgspec.field(default=None, name="lagTimestampTopK")
