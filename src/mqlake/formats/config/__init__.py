"""Read the files of a store's `config` directory (docs/formats/config.md)."""

from __future__ import annotations

from mqlake.errors import FormatError
from mqlake.formats.config.base import Config, DataVersion, Read, convert, decode, load
from mqlake.formats.config.consumer_filter import ConsumerFilters
from mqlake.formats.config.consumer_offset import ConsumerOffsets, LmqConsumerOffsets
from mqlake.formats.config.consumer_order_info import ConsumerOrderInfos
from mqlake.formats.config.delay_offset import DelayOffsets
from mqlake.formats.config.message_request_mode import MessageRequestModes
from mqlake.formats.config.metrics import TimerMetrics, TransactionMetrics
from mqlake.formats.config.subscription_group import SubscriptionGroups
from mqlake.formats.config.topic_queue_mapping import TopicQueueMappings
from mqlake.formats.config.topics import Topics

__all__ = [
    "KINDS",
    "Config",
    "ConsumerFilters",
    "ConsumerOffsets",
    "ConsumerOrderInfos",
    "DataVersion",
    "DelayOffsets",
    "LmqConsumerOffsets",
    "MessageRequestModes",
    "Read",
    "SubscriptionGroups",
    "TimerMetrics",
    "TopicQueueMappings",
    "Topics",
    "TransactionMetrics",
    "convert",
    "decode",
    "load",
    "load_config",
]

KINDS: dict[str, type[Config]] = {
    kind.file_name: kind
    for kind in (
        Topics,
        ConsumerOffsets,
        LmqConsumerOffsets,
        SubscriptionGroups,
        DelayOffsets,
        ConsumerFilters,
        ConsumerOrderInfos,
        TopicQueueMappings,
        MessageRequestModes,
        TransactionMetrics,
        TimerMetrics,
    )
}
"""The configuration files by name."""


def load_config(read: Read, name: str) -> Config | None:
    """Return a configuration file by name, or its `.bak`; None if neither is there.

    `load(read, Topics)` is the same with a static type.

    Raises:
        FormatError: unknown name, or what is there is damaged.
    """
    if name not in KINDS:
        raise FormatError(f"not the name of a known configuration file: {name!r}")
    return load(read, KINDS[name])
