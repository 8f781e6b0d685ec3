"""Read `config/subscriptionGroup.json` (docs/formats/config.md).

Upstream: `SubscriptionGroupManager`.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

import msgspec

from mqlake.formats.config.base import DataVersion
from mqlake.formats.fastjson_values import ORDINALS

PRIORITY_FACTOR = "priority.factor"
"""Attribute: how many percent of the group's pops read queues by priority, if the topic has any."""
FULL_FACTOR = 100
_SHORT_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")


class ExponentialRetryPolicy(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """Growing delays between deliveries, in milliseconds."""

    initial: int = 5_000
    max: int = 7_200_000
    multiplier: int = 2


class CustomizedRetryPolicy(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """Listed delays between deliveries, in milliseconds."""

    next: list[int] = []


_PolicyType = Annotated[str, msgspec.Meta(extra={ORDINALS: ("EXPONENTIAL", "CUSTOMIZED")})]


class GroupRetryPolicy(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """How a group's failed messages come again."""

    type: _PolicyType = "CUSTOMIZED"
    exponential_retry_policy: ExponentialRetryPolicy | None = None
    customized_retry_policy: CustomizedRetryPolicy | None = None


class SimpleSubscription(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """One topic that a group reads, and its filter."""

    topic: str = ""
    expression_type: str = ""
    expression: str = ""
    version: int = 0


class SubscriptionGroup(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """One consumer group's settings.

    Attributes:
        created_by_admin: True if an administrator created the group with mqlake; RocketMQ ignores
            it. Such a group stays even if it holds nothing.
    """

    group_name: str = ""
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    group_retry_policy: GroupRetryPolicy = GroupRetryPolicy()
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    subscription_data_set: list[SimpleSubscription] = []
    attributes: dict[str, str] = {}
    created_by_admin: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def priority_factor(self) -> int:
        """Return the percentage of pops that read queues by priority (`priority.factor`)."""
        text = self.attributes.get(PRIORITY_FACTOR, "")
        return int(text) if _SHORT_NUMBER.fullmatch(text) else FULL_FACTOR


class SubscriptionGroups(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """All consumer groups of a broker by name, and what each is forbidden of each topic (bits)."""

    file_name: ClassVar[str] = "subscriptionGroup.json"

    subscription_group_table: dict[str, SubscriptionGroup] = {}
    forbidden_table: dict[str, dict[str, int]] = {}
    data_version: DataVersion = DataVersion()
