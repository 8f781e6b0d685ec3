"""Read `config/topics.json` (docs/formats/config.md). Upstream: `TopicConfigManager`."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from mqlake.formats.config.base import DataVersion
from mqlake.formats.fastjson_values import ORDINALS

PERM_READ = 4
PERM_WRITE = 2
PERM_INHERIT = 1

MESSAGE_TYPE = "message.type"
"""Attribute that says what kind of messages a topic is for."""
PRIORITIES = "PRIORITY"
"""Value of that attribute: pops read the queues by priority."""
QUEUE_TYPE = "queue.type"
"""Attribute that says of which kind a topic's consume queues are."""
SIMPLE_QUEUES = "SimpleCQ"
BATCH_QUEUES = "BatchCQ"

_FilterType = Annotated[str, msgspec.Meta(extra={ORDINALS: ("SINGLE_TAG", "MULTI_TAG")})]


class Topic(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """One topic's settings; `perm` is a sum of the PERM_* bits."""

    topic_name: str = ""
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = PERM_READ | PERM_WRITE
    topic_filter_type: _FilterType = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False
    attributes: dict[str, str] = {}

    @property
    def has_batch_queues(self) -> bool:
        """Return whether its queues are batch consume queues."""
        return self.attributes.get(QUEUE_TYPE) == BATCH_QUEUES


class Topics(msgspec.Struct, frozen=True, rename="camel"):
    """All topics of a broker, by name."""

    file_name: ClassVar[str] = "topics.json"

    topic_config_table: dict[str, Topic] = {}
    data_version: DataVersion = DataVersion()
