"""What clients report about themselves: their groups and subscriptions.

Upstream: `HeartbeatData`, `ConsumerData`, `SubscriptionData`, `CheckClientRequestBody`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from mqlake.formats.fastjson_values import ORDINALS

ACTIVE = "CONSUME_ACTIVELY"
PASSIVE = "CONSUME_PASSIVELY"
BROADCASTING = "BROADCASTING"
CLUSTERING = "CLUSTERING"

# rocketmq-client-cpp sends ordinals instead of names.
_ConsumeType = Annotated[str, msgspec.Meta(extra={ORDINALS: (ACTIVE, PASSIVE, "CONSUME_POP")})]
MessageModel = Annotated[str, msgspec.Meta(extra={ORDINALS: (BROADCASTING, CLUSTERING)})]
_ConsumeFromWhere = Annotated[
    str,
    msgspec.Meta(
        extra={
            ORDINALS: (
                "CONSUME_FROM_LAST_OFFSET",
                "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
                "CONSUME_FROM_MIN_OFFSET",
                "CONSUME_FROM_MAX_OFFSET",
                "CONSUME_FROM_FIRST_OFFSET",
                "CONSUME_FROM_TIMESTAMP",
            )
        }
    ),
]


class Subscription(msgspec.Struct, rename="camel"):
    """Which messages of a topic a consumer wants.

    Attributes:
        sub_string: an expression of the type `expression_type`: TAG (or None), SQL92.
        tags_set, code_set: the tags of an expression of tags, and their hashes.
        sub_version: as the consumer counts; a greater one replaces a smaller one.
    """

    topic: str = ""
    sub_string: str = ""
    sub_version: int = 0
    expression_type: str | None = None
    class_filter_mode: bool = False
    tags_set: list[str] = []
    code_set: list[int] = []


class ConsumerData(msgspec.Struct, rename="camel"):
    """A consumer's membership of a group.

    Attributes:
        consume_type: CONSUME_ACTIVELY (pull), CONSUME_PASSIVELY (push) or CONSUME_POP.
        message_model: CLUSTERING or BROADCASTING.
        consume_from_where: where it begins in a queue of which the group has no offset.
    """

    group_name: str = ""
    consume_type: _ConsumeType = PASSIVE
    message_model: MessageModel = CLUSTERING
    consume_from_where: _ConsumeFromWhere = "CONSUME_FROM_LAST_OFFSET"
    subscription_data_set: list[Subscription] = []
    unit_mode: bool = False


class ProducerData(msgspec.Struct, rename="camel"):
    """A producer's membership of a group."""

    group_name: str = ""


class Heartbeat(msgspec.Struct, rename="camel"):
    """HEART_BEAT.

    Attributes:
        heartbeat_fingerprint: a hash of all the rest; 0 from clients that do not send it.
        without_sub: the subscriptions are left out, since they are those of the last time.
    """

    client_id: str = msgspec.field(name="clientID", default="")
    producer_data_set: list[ProducerData] = []
    consumer_data_set: list[ConsumerData] = []
    heartbeat_fingerprint: int = 0
    without_sub: bool = False


class CheckClient(msgspec.Struct, rename="camel"):
    """CHECK_CLIENT_CONFIG: may a consumer subscribe so?"""

    client_id: str = ""
    group: str = ""
    subscription_data: Subscription | None = None


class ConsumerIds(msgspec.Struct, rename="camel"):
    """The answer to GET_CONSUMER_LIST_BY_GROUP."""

    consumer_id_list: list[str]
