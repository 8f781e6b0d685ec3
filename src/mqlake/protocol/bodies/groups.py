"""Bodies about consumer groups: a broker's answers, and requests to change groups.

Upstream: `SubscriptionGroupConfig`, `SubscriptionGroupWrapper`, `SubscriptionGroupList`.
Fields that are null upstream are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import msgspec

from mqlake.formats.config import DataVersion
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.protocol.body import encode_body


class GroupConfigs(msgspec.Struct, rename="camel"):
    """The body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST."""

    group_config_list: list[SubscriptionGroup] = []


class TopicConfigList(msgspec.Struct, rename="camel"):
    """The body of UPDATE_AND_CREATE_TOPIC_LIST."""

    topic_config_list: list[Topic] = []


class TopicNames(msgspec.Struct, rename="camel"):
    """The body of DELETE_TOPIC_IN_BROKER_LIST."""

    topic_list: list[str] = []


class GroupNames(msgspec.Struct, rename="camel"):
    """The body of DELETE_SUBSCRIPTION_GROUP_LIST.

    Attributes:
        clean_offset: whether to delete the groups' offsets, too.
    """

    group_name_list: list[str] = []
    clean_offset: bool = False


class GroupForbidden(msgspec.Struct, rename="camel"):
    """The answer to UPDATE_AND_GET_GROUP_FORBIDDEN: whether a group may read a topic."""

    topic: str
    group: str
    readable: bool


def encode_group(group: SubscriptionGroup) -> bytes:
    """Return a group's settings as JSON."""
    return encode_body(_plain(group))


def join_groups(
    members: Iterable[bytes], version: DataVersion, forbidden: dict[str, dict[str, int]]
) -> bytes:
    """Return groups' settings by name, and which topics they may not read.

    Args:
        members: for each group, its name and the result of `encode_group`.
        forbidden: permissions by group and topic.
    """
    return b"".join(
        (
            b'{"subscriptionGroupTable":{',
            b",".join(members),
            b'},"dataVersion":',
            encode_body(version),
            b',"forbiddenTable":',
            encode_body(forbidden),
            b"}",
        )
    )


def _plain(group: SubscriptionGroup) -> dict[str, object]:
    fields = cast("dict[str, object]", msgspec.to_builtins(group))
    if not group.subscription_data_set:
        del fields["subscriptionDataSet"]
    policy = cast("dict[str, object]", fields["groupRetryPolicy"])
    fields["groupRetryPolicy"] = {name: each for name, each in policy.items() if each is not None}
    return fields
