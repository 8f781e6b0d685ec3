"""Read `config/topicQueueMapping.json` (docs/formats/config.md).

RocketMQ 5: `TopicQueueMappingManager`, the static topics.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from mqlake.formats.config.base import DataVersion


class LogicQueueMappingItem(msgspec.Struct, frozen=True, rename="camel"):
    """One stretch of a logic queue, and the broker queue that holds it.

    Attributes:
        bname: name of the broker.
        end_offset: queue offset after the last one of the stretch; -1 while it is open.
        gen: counts the stretches of the logic queue.
        logic_offset: what the message at `start_offset` is numbered in the logic queue; -1 until
            that is decided.
        queue_id: of the broker's queue.
        start_offset: queue offset at which the stretch begins.
        time_of_end, time_of_start: reserved, -1.
    """

    # In alphabetical order, as RocketMQ writes them.
    bname: str = ""
    end_offset: int = -1
    gen: int = 0
    logic_offset: int = 0
    queue_id: int = 0
    start_offset: int = 0
    time_of_end: int = -1
    time_of_start: int = -1


class TopicQueueMapping(msgspec.Struct, frozen=True, rename="camel"):
    """One static topic; `hosted_queues` by logic queue id."""

    topic: str = ""
    scope: str = "__global__"
    total_queues: int = 0
    bname: str = ""
    epoch: int = 0
    dirty: bool = False
    curr_id_map: dict[int, int] = {}
    hosted_queues: dict[int, list[LogicQueueMappingItem]] = {}


class TopicQueueMappings(msgspec.Struct, frozen=True, rename="camel"):
    """All static topics that a broker takes part in, by name."""

    file_name: ClassVar[str] = "topicQueueMapping.json"

    topic_queue_mapping_info_map: dict[str, TopicQueueMapping] = {}
    data_version: DataVersion = DataVersion()
