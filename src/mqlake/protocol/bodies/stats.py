"""Offsets of queues and groups, and statistics: a broker's answers to administrators.

Upstream: `TopicStatsTable`, `ConsumeStats`, `ConsumeStatsList`, `BrokerStatsData`,
`QueryConsumeTimeSpanBody`, `QueryConsumeQueueResponseBody`.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from mqlake.formats import fastjson
from mqlake.protocol.bodies.heartbeat import Subscription
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.queue_tables import (
    read_object,
    read_queue_table,
)
from mqlake.protocol.body import decode_answer
from mqlake.protocol.command import Body


class TopicOffset(msgspec.Struct, rename="camel"):
    """A queue's offsets, and the store time of its last message (milliseconds, 0 for none)."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


class TopicStats(msgspec.Struct):
    """The answer to GET_TOPIC_STATS_INFO."""

    offset_table: dict[MessageQueue, TopicOffset] = {}
    topic_put_tps: float = 0.0

    @classmethod
    def decode(cls, data: Body) -> TopicStats:
        """Return the decoded body.

        Raises:
            BodyError: the body is malformed.
        """
        fields = read_object(data)
        table = read_queue_table(fields.get("offsetTable") or {}, TopicOffset)
        return cls(table, float(str(fields.get("topicPutTps") or 0)))


class OffsetWrapper(msgspec.Struct, rename="camel"):
    """The end of a queue, and a group's offset in it.

    Attributes:
        last_timestamp: store time of the last message consumed, milliseconds; 0 if none was.
    """

    broker_offset: int = 0
    consumer_offset: int = 0
    pull_offset: int = 0
    last_timestamp: int = 0

    @property
    def lag(self) -> int:
        """How many messages the group has not consumed."""
        return self.broker_offset - self.consumer_offset

    @property
    def in_flight(self) -> int:
        """How many messages the group has pulled but not consumed."""
        return self.pull_offset - self.consumer_offset


class ConsumeStats(msgspec.Struct):
    """The answer to GET_CONSUME_STATS."""

    offset_table: dict[MessageQueue, OffsetWrapper] = {}
    consume_tps: float = 0.0

    @property
    def lag(self) -> int:
        """How many messages the group has not consumed."""
        return sum(each.lag for each in self.offset_table.values())

    @property
    def in_flight(self) -> int:
        """How many messages the group has pulled but not consumed."""
        return sum(each.in_flight for each in self.offset_table.values())

    @classmethod
    def decode(cls, data: Body) -> ConsumeStats:
        """Return the decoded body.

        Raises:
            BodyError: the body is malformed.
        """
        return cls.of(read_object(data))

    @classmethod
    def of(cls, fields: dict[str, object]) -> ConsumeStats:
        """Return the statistics in the members of a body.

        Raises:
            BodyError: the members are malformed.
        """
        table = read_queue_table(fields.get("offsetTable") or {}, OffsetWrapper)
        return cls(table, float(str(fields.get("consumeTps") or 0)))


class BrokerConsumeStats(msgspec.Struct):
    """The answer to GET_BROKER_CONSUME_STATS: for each group, one entry per topic."""

    broker_addr: str = ""
    groups: dict[str, list[ConsumeStats]] = {}

    @classmethod
    def decode(cls, data: Body) -> BrokerConsumeStats:
        """Return the decoded body.

        Raises:
            BodyError: the body is malformed.
        """
        fields = read_object(data)
        listed = decode_answer(
            list[dict[str, list[dict[str, object]]]],
            fastjson.dumps(fields.get("consumeStatsList") or [], pretty=False).encode(),
        )
        groups = {
            name: [ConsumeStats.of(each) for each in stats]
            for one in listed
            for name, stats in one.items()
        }
        return cls(str(fields.get("brokerAddr") or ""), groups)


class QueueTimeSpan(msgspec.Struct, rename="camel"):
    """Store times of a queue's first, last and last consumed message, in milliseconds."""

    message_queue: MessageQueue
    min_time_stamp: int = 0
    max_time_stamp: int = 0
    consume_time_stamp: int = 0
    delay_time: int = 0


class StatsItem(msgspec.Struct, rename="camel"):
    """A sum over a period of time, and the rate per second."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


class BrokerStats(msgspec.Struct, rename="camel"):
    """The answer to VIEW_BROKER_STATS_DATA."""

    stats_minute: StatsItem = msgspec.field(default_factory=StatsItem)
    stats_hour: StatsItem = msgspec.field(default_factory=StatsItem)
    stats_day: StatsItem = msgspec.field(default_factory=StatsItem)


class QueueEntryData(msgspec.Struct, rename="camel"):
    """A consume queue entry; `msg` is what is wrong with it."""

    physic_offset: int = 0
    physic_size: int = 0
    tags_code: int = 0
    eval: bool = False
    extend_data_json: str | UnsetType = UNSET
    bit_map: str | UnsetType = UNSET
    msg: str | UnsetType = UNSET


class QueueEntries(msgspec.Struct, rename="camel"):
    """The answer to QUERY_CONSUME_QUEUE."""

    max_queue_index: int = 0
    min_queue_index: int = 0
    queue_data: list[QueueEntryData] = []
    subscription_data: Subscription | UnsetType = UNSET
    filter_data: str | UnsetType = UNSET


class ResetOffsets(msgspec.Struct):
    """The answer to INVOKE_BROKER_TO_RESET_OFFSET: the group's new offsets."""

    offset_table: dict[MessageQueue, int] = {}

    @classmethod
    def decode(cls, data: Body) -> ResetOffsets:
        """Return the decoded body.

        Raises:
            BodyError: the body is malformed.
        """
        return cls(read_queue_table(read_object(data).get("offsetTable") or {}, int))
