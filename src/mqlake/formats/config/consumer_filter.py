"""Read `config/consumerFilter.json` (docs/formats/config.md). Upstream: `ConsumerFilterManager`."""

from __future__ import annotations

from typing import ClassVar

import msgspec


class BloomFilter(msgspec.Struct, frozen=True, rename="camel"):
    """The bits that a group sets in the filter bit map of a message that it wants."""

    bit_pos: list[int] = []
    bit_num: int = 0


class ConsumerFilter(msgspec.Struct, frozen=True, rename="camel"):
    """One group's filter on one topic; times in milliseconds."""

    consumer_group: str = ""
    topic: str = ""
    expression: str = ""
    expression_type: str = ""
    born_time: int = 0
    dead_time: int = 0
    bloom_filter_data: BloomFilter | None = None
    client_version: int = 0


class TopicFilters(msgspec.Struct, frozen=True, rename="camel"):
    """The filters on one topic, by group."""

    topic: str = ""
    group_filter_data: dict[str, ConsumerFilter] = {}


class ConsumerFilters(msgspec.Struct, frozen=True, rename="camel"):
    """All filters of a broker, by topic."""

    file_name: ClassVar[str] = "consumerFilter.json"

    filter_data_by_topic: dict[str, TopicFilters] = {}
