"""A topic's settings together with the mapping of a static topic.

Upstream: `TopicConfigAndQueueMapping`, `TopicQueueMappingDetail`.
"""

from __future__ import annotations

import msgspec

from mqlake.formats.config.topic_queue_mapping import TopicQueueMapping
from mqlake.formats.config.topics import Topic
from mqlake.protocol.body import MAX_LENIENT, MAX_QUOTED, decode_answer, decode_body, quoted_keys
from mqlake.protocol.command import Body
from mqlake.protocol.errors import BodyError


class MappedTopic(Topic, frozen=True, rename="camel"):
    """What GET_TOPIC_CONFIG answers; without a mapping it is no static topic."""

    mapping_detail: TopicQueueMapping | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def mapping(self) -> TopicQueueMapping | None:
        """Return the mapping, None for a topic that is not static."""
        return self.mapping_detail or None

    @property
    def topic(self) -> Topic:
        """Return the topic's settings without the mapping."""
        return Topic(*msgspec.structs.astuple(self)[: len(Topic.__struct_fields__)])


def mapped_topic(topic: Topic, mapping: TopicQueueMapping | None) -> Topic:
    """Return a topic's settings with its mapping, if it has one."""
    if mapping is None:
        return topic
    return MappedTopic(*msgspec.structs.astuple(topic), mapping_detail=mapping)


def decode_mapped_topic(data: Body) -> MappedTopic:
    """Return what GET_TOPIC_CONFIG answers.

    Raises:
        BodyError: it is no such JSON.
    """
    return decode_answer(MappedTopic, quoted_keys(bytes(data)))


def decode_mapping(data: Body) -> TopicQueueMapping:
    """Return the body of UPDATE_AND_CREATE_STATIC_TOPIC.

    Raises:
        BodyError: it is no such JSON, or longer than `MAX_QUOTED`.
    """
    if len(data) > MAX_QUOTED:
        raise BodyError(f"the mapping has {len(data)} bytes; the maximum is {MAX_QUOTED}")
    return decode_body(TopicQueueMapping, quoted_keys(bytes(data)), MAX_LENIENT)
