"""Headers of administrative requests to a broker (upstream: `protocol.header`)."""

from __future__ import annotations

import msgspec

from mqlake.protocol.header import Header, Int32, Int64, TopicRequest


class TopicNameHeader(TopicRequest):
    """Requests that are about one topic, such as DELETE_TOPIC_IN_BROKER, GET_TOPIC_CONFIG."""

    topic: str


class CreateTopicHeader(Header):
    """UPDATE_AND_CREATE_TOPIC, UPDATE_AND_CREATE_STATIC_TOPIC.

    Attributes:
        default_topic: not used; clients must send it.
        attributes: changes such as "+message.type=FIFO,-reserve.time".
    """

    topic: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str
    default_topic: str = ""
    topic_sys_flag: Int32 | None = None
    order: bool = False
    attributes: str | None = None
    force: bool | None = None


class TopicCountHeader(Header):
    """The answer to GET_ALL_TOPIC_CONFIG: how many topics there are."""

    total_topic_num: Int32


class GroupCountHeader(Header):
    """The answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG: how many groups there are."""

    total_group_num: Int32


class GroupNameHeader(Header):
    """GET_SUBSCRIPTIONGROUP_CONFIG, QUERY_TOPICS_BY_CONSUMER."""

    group: str


class DeleteGroupHeader(Header):
    """DELETE_SUBSCRIPTIONGROUP.

    Attributes:
        clean_offset: forget where the group stands, too.
    """

    group_name: str
    clean_offset: bool = False


class GroupForbiddenHeader(Header):
    """UPDATE_AND_GET_GROUP_FORBIDDEN.

    Attributes:
        readable: whether the group may read the topic from now on; None to change nothing.
    """

    group: str
    topic: str
    readable: bool | None = None


class ExportConfigsHeader(Header):
    """EXPORT_ROCKSDB_CONFIG_TO_JSON.

    Attributes:
        config_type: which tables, parted by ";": topics, subscriptionGroups, consumerOffsets.
    """

    config_type: str


class TimerEngineHeader(Header):
    """SWITCH_TIMER_ENGINE.

    Attributes:
        engine: "F" for the timer's files, "R" for RocksDB.
    """

    engine: str | None = msgspec.field(default=None, name="E_T")


class ConsumeStatsHeader(Header):
    """GET_CONSUME_STATS.

    Attributes:
        topic: of which; of all that the group subscribes to without it.
        topic_list: several topics, parted by ";".
    """

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


class BrokerConsumeStatsHeader(Header):
    """GET_BROKER_CONSUME_STATS: of all groups, or of ordered topics only."""

    is_order: bool = False


class TopicGroupHeader(Header):
    """QUERY_CONSUME_TIME_SPAN, QUERY_SUBSCRIPTION_BY_CONSUMER: a group and a topic."""

    topic: str
    group: str


class CorrectionOffsetHeader(Header):
    """QUERY_CORRECTION_OFFSET.

    Attributes:
        filter_groups: groups that do not count, parted by ",".
    """

    compare_group: str
    topic: str
    filter_groups: str | None = None


class ResetOffsetHeader(Header):
    """INVOKE_BROKER_TO_RESET_OFFSET.

    Attributes:
        queue_id: which queue; all of the topic below 0.
        timestamp: store time in milliseconds; below 0 for the end of the queue.
        offset: instead of a time, with `queue_id`; -1 for none.
    """

    topic: str
    group: str
    timestamp: Int64
    queue_id: Int32 = -1
    offset: Int64 | None = None
    is_force: bool = False


class CloneOffsetHeader(Header):
    """CLONE_GROUP_OFFSET. Without a topic: of all that the source has offsets of."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


class ConsumerConnectionsHeader(Header):
    """GET_CONSUMER_CONNECTION_LIST."""

    consumer_group: str


class ProducerConnectionsHeader(Header):
    """GET_PRODUCER_CONNECTION_LIST."""

    producer_group: str


class ConsumerHeader(Header):
    """GET_CONSUMER_RUNNING_INFO, CONSUME_MESSAGE_DIRECTLY: one consumer of a group.

    Attributes:
        msg_id: offset message id of what is to be consumed.
    """

    consumer_group: str
    client_id: str
    jstack_enable: bool = False
    msg_id: str | None = None
    topic: str | None = None


class ConsumerStatusHeader(Header):
    """INVOKE_BROKER_TO_GET_CONSUMER_STATUS, GET_CONSUMER_STATUS_FROM_CLIENT."""

    topic: str
    group: str
    client_addr: str | None = None


class StatsHeader(Header):
    """VIEW_BROKER_STATS_DATA: a statistic such as TOPIC_PUT_NUMS, and of what."""

    stats_name: str
    stats_key: str


class QueryConsumeQueueHeader(Header):
    """QUERY_CONSUME_QUEUE: entries of a queue from a queue offset on."""

    topic: str
    queue_id: Int32
    index: Int64
    count: Int32
    consumer_group: str | None = None


class ReadAheadHeader(Header, rename={"mode": "READ_AHEAD_MODE"}):
    """SET_COMMITLOG_READ_MODE: 0 reads ahead, 1 does not (`madvise`)."""

    mode: Int32


class ConfigVersionHeader(Header):
    """The answer to GET_BROKER_CONFIG: the version of the settings, as JSON."""

    version: str
