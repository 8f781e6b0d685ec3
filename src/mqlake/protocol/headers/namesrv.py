"""Headers of requests to a name server (upstream: `protocol.header.namesrv`)."""

from __future__ import annotations

from enum import StrEnum

from mqlake.protocol.header import Header, Int32, Int64


class RegistrationPart(StrEnum):
    """Which topics a registration contains, if not all of them. RocketMQ ignores this field."""

    FIRST = "first"
    NEXT = "next"
    LAST = "last"
    CHANGES = "changes"


class RegisterBrokerHeader(Header):
    """REGISTER_BROKER.

    Attributes:
        registration_part: None: all topics, or a registration of RocketMQ.
    """

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Int64
    heartbeat_timeout_millis: Int64 | None = None
    enable_acting_master: bool | None = None
    compressed: bool = False
    body_crc32: Int32 = 0
    registration_part: RegistrationPart | None = None


class RegisterBrokerResponseHeader(Header):
    """To a slave: where its master is."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class UnregisterBrokerHeader(Header):
    """UNREGISTER_BROKER."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class QueryDataVersionHeader(Header):
    """QUERY_DATA_VERSION: has what a broker registered changed since?"""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class QueryDataVersionResponseHeader(Header):
    """Whether the broker has to register again."""

    changed: bool


class BrokerHeartbeatHeader(Header):
    """BROKER_HEARTBEAT."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Int64 | None = None
    heartbeat_timeout_mills: Int64 | None = None


class GetBrokerMemberGroupHeader(Header):
    """GET_BROKER_MEMBER_GROUP."""

    cluster_name: str
    broker_name: str


class NotifyMinBrokerIdChangeHeader(Header):
    """NOTIFY_MIN_BROKER_ID_CHANGE, to the brokers of a name.

    A broker that left is `offline_broker_addr`; one that came has `ha_broker_addr` for its slaves.
    """

    min_broker_id: Int64 | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None


class BrokerNameHeader(Header):
    """WIPE_WRITE_PERM_OF_BROKER, ADD_WRITE_PERM_OF_BROKER."""

    broker_name: str


class WipeWritePermResponseHeader(Header):
    """How many topics lost their write permission."""

    wipe_topic_count: Int32


class AddWritePermResponseHeader(Header):
    """How many topics got their write permission back."""

    add_topic_count: Int32


class GetRouteInfoHeader(Header):
    """GET_ROUTEINFO_BY_TOPIC."""

    topic: str
    accept_standard_json_only: bool | None = None


class TopicHeader(Header):
    """REGISTER_TOPIC_IN_NAMESRV."""

    topic: str


class DeleteTopicInNamesrvHeader(Header):
    """DELETE_TOPIC_IN_NAMESRV; without a cluster, in all of them."""

    topic: str
    cluster_name: str | None = None


class GetTopicsByClusterHeader(Header):
    """GET_TOPICS_BY_CLUSTER."""

    cluster: str


class PutKVConfigHeader(Header):
    """PUT_KV_CONFIG."""

    namespace: str
    key: str
    value: str


class KVConfigHeader(Header):
    """GET_KV_CONFIG, DELETE_KV_CONFIG."""

    namespace: str
    key: str


class GetKVConfigResponseHeader(Header):
    """The value asked for."""

    value: str | None = None


class GetKVListByNamespaceHeader(Header):
    """GET_KVLIST_BY_NAMESPACE."""

    namespace: str
