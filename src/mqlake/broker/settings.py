"""Settings of a broker: those of its store, of its replication, and those for its clients.

Upstream: `BrokerConfig`, `BrokerIdentity`, `NettyServerConfig`. One `broker.conf` names them all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec

from mqlake.auth import settings as auth
from mqlake.errors import StoreError
from mqlake.formats.config.topics import PERM_READ, PERM_WRITE
from mqlake.formats.topic_names import TRACE_TOPIC
from mqlake.replication.settings import ReplicationSettings
from mqlake.store.bounds import (
    INT_MAX,
    LAST_PORT,
    Addresses,
    Count,
    CountOrNone,
    Effect,
    Interval,
    Label,
    ListenAddress,
    MetricHeaders,
    MetricLabels,
    MetricsExporter,
    MetricsTarget,
    Name,
    Networks,
    Now,
    PathOrEmpty,
    PathText,
    Pause,
    Percent,
    Restart,
    Timeout,
    Within,
    effects,
)
from mqlake.store.settings import settings_of

FAST_PORT_DISTANCE = 2
"""The port for clients with `vipChannelEnabled` is this far below `listenPort`."""
_LEAST_MEMORY = 32 << 20
"""Minimum bytes for connections: two frames may need that."""

_YEAR_2100 = 4_102_444_800_000
QueueCount = Annotated[int, Within(1, 4096)]
"""Maximum number of queues of a topic."""


_IN_MEMORY = (
    "A pop's check point is always kept in memory first, for at most `popCkStayBufferTime`, and"
    " acknowledgements are merged there. If `popCkStayBufferTime` is 0, each pop writes its check"
    " point at once."
)
_BY_TIMER = "Check points are processed when the timer delivers them, so no scan needs an interval."
_ROCKSDB = "mqlake does not use RocksDB."
_LOCAL = (
    "Users and ACLs are in `config/auth.json` of the store, or in RocketMQ's directories if those"
    " exist; every request is checked."
)

WITHOUT_EFFECT = {
    "enablePopBufferMerge": _IN_MEMORY,
    "enablePopBatchAck": _IN_MEMORY,
    "popCkStayBufferTimeOut": _IN_MEMORY,
    "popCkMaxBufferSize": _IN_MEMORY,
    "popCkOffsetMaxQueueSize": _IN_MEMORY,
    "reviveInterval": _BY_TIMER,
    "reviveMaxSlow": _BY_TIMER,
    "reviveScanTime": _BY_TIMER,
    "reviveAckWaitMs": _BY_TIMER,
    "enableSkipLongAwaitingAck": _BY_TIMER,
    "popConsumerFSServiceInit": _ROCKSDB,
    "popConsumerKVServiceInit": _ROCKSDB,
    "popConsumerKVServiceEnable": _ROCKSDB,
    "popConsumerKVServiceLog": _ROCKSDB,
    "syncControllerMetadataPeriod": (
        "The broker looks for the leader when a controller does not answer or names another leader."
    ),
    **dict.fromkeys(
        (
            "authenticationProvider",
            "authenticationMetadataProvider",
            "authenticationStrategy",
            "authorizationProvider",
            "authorizationMetadataProvider",
            "authorizationStrategy",
            "userCacheMaxNum",
            "userCacheExpiredSecond",
            "userCacheRefreshSecond",
            "aclCacheMaxNum",
            "aclCacheExpiredSecond",
            "aclCacheRefreshSecond",
            "statefulAuthenticationCacheMaxNum",
            "statefulAuthenticationCacheExpiredSecond",
            "statefulAuthorizationCacheMaxNum",
            "statefulAuthorizationCacheExpiredSecond",
        ),
        _LOCAL,
    ),
    "totalReplicas": (
        "A master that starts with `enableSlaveActingMaster` asks all slaves that the name servers"
        " know for their offsets, however many there are."
    ),
    "compressedRegister": (
        "The compressed form lacks the flags of topics. Registrations that are too long for one"
        " request are split."
    ),
    "sendHeartbeatTimeoutMillis": "Name servers do not answer heartbeats.",
    "compatibleWithOldNameSrv": (
        "Name servers of RocketMQ 4 know no acting master, so no requests are adapted to them."
    ),
    "retrieveMessageFromPopRetryTopicV1": (
        "Each pop reads the retry topics of both names, whatever `enableRetryTopicV2` says."
    ),
}
"""Names of RocketMQ that are accepted, and why they have no effect here."""


class BrokerSettings(ReplicationSettings, frozen=True, rename="camel", kw_only=True):
    """The identity of a broker, its limits, and how it serves its clients.

    Each field declares whether it may change in a running broker (`Now`, `Restart`). Times are
    milliseconds, sizes bytes, unless stated otherwise.
    """

    without_effect: ClassVar[Mapping[str, str]] = WITHOUT_EFFECT

    # Identity and addresses
    broker_cluster_name: Restart[Name] = "DefaultCluster"
    """The cluster that the broker belongs to."""
    broker_id: Restart[CountOrNone] = 0
    """0 for a master, 1 or more for a slave. All slaves of a master have different ids. If
    `updateBrokerConfig` changes only `brokerRole`, the id becomes 0 for a master and 1 for a
    slave."""
    namesrv_addr: Restart[Addresses] = ""
    """The name servers to register with, separated by `;`."""
    store_path_root_dir: Restart[PathText] = "~/store"
    """The directory of the store, created if missing."""
    store_path_commit_log: Restart[PathOrEmpty] = ""
    """Only RocketMQ's default is accepted: `commitlog` in the root directory."""
    region_id: Now[Label] = "DefaultRegion"
    """Stored with every message, and sent to producers."""
    trace_on: Now[bool] = True
    """Sent to producers: whether they should trace the messages that they send."""

    # Topics and groups
    broker_permission: Now[Annotated[int, Within(0, 7)]] = PERM_READ | PERM_WRITE
    """The permissions that routes show for all topics: 2 to write, 4 to read, 6 for both. Pulls and
    pops without 4, and sends to ordered topics without 2, are also refused."""
    default_topic_queue_nums: Now[QueueCount] = 8
    """The maximum number of queues of a topic that a send creates."""
    auto_create_topic_enable: Now[bool] = True
    """Whether a send to a topic that does not exist creates it."""
    auto_create_subscription_group: Now[bool] = True
    """Whether a consumer whose group does not exist creates the group."""
    enable_create_sys_group: Now[bool] = True
    """Like `autoCreateSubscriptionGroup`, for groups whose name begins with `CID_RMQ_SYS_`."""
    cluster_topic_enable: Now[bool] = True
    """Whether the topic that has the cluster's name may be read and written."""
    broker_topic_enable: Now[bool] = True
    """Whether the topic that has the broker's name may be read and written."""
    trace_topic_enable: Now[bool] = False
    """Whether the broker creates the topic for message traces if it does not exist."""
    msg_trace_topic_name: Restart[Name] = TRACE_TOPIC
    """The name of the topic for message traces."""
    validate_system_topic_when_update_topic: Now[bool] = True
    """Whether requests to update or delete system topics are refused."""
    clear_retry_topic_when_delete_topic: Now[bool] = True
    """Whether deleting a topic also deletes the retry topics of its pop consumers."""

    # Send
    reject_transaction_message: Now[bool] = False
    """Whether half messages are refused."""
    recall_message_enable: Now[bool] = False
    """Whether producers may recall messages that wait for their delivery time."""
    allow_recall_when_broker_not_writeable: Now[bool] = True
    """Whether producers may recall messages while `brokerPermission` does not include writing."""
    start_accept_send_request_time_stamp: Now[Annotated[int, Within(0, _YEAR_2100)]] = 0
    """Milliseconds since 1970. Until then, sends are refused with this time in the remark. The
    broker logs this time at its start."""
    send_thread_pool_queue_capacity: Now[Count] = 10_000
    """The maximum number of sends that wait for the disk or for slaves. Further sends are answered
    as busy."""

    # Static topics
    forward_timeout: Now[Timeout] = 3000
    """How long to wait for another broker that has a part of a static topic's queue."""

    # Pull
    long_polling_enable: Now[bool] = True
    """Whether a pull of a queue without new messages waits for as long as the consumer requests,
    instead of for `shortPollingTimeMills`."""
    short_polling_time_mills: Now[Timeout] = 1000
    """How long a pull of a queue without new messages waits if `longPollingEnable` is off."""
    reject_pull_consumer_enable: Now[bool] = False
    """Whether heartbeats of consumers that pull by themselves (not push consumers) are ignored, and
    pulls of groups without a member are refused."""
    enable_property_filter: Now[bool] = True
    """Whether consumers may filter by SQL92 (RocketMQ's default: false)."""
    max_filter_expression_size: Now[Annotated[int, Within(64, 32_768)]] = 4096
    """The maximum length of an SQL92 or tag expression in characters. Longer expressions take
    longer to parse, and no other request is served meanwhile."""
    lite_pull_message_enable: Now[bool] = True
    """Whether LITE_PULL_MESSAGE is served."""
    use_server_side_reset_offset: Now[bool] = True
    """Whether a reset of a group's offsets takes effect at the broker, with the group's next
    pull."""
    correct_offset_past_end: Now[bool] = True
    """Whether a consumer that pulls from an offset past the end of a queue continues at its group's
    committed offset, or at the beginning of the queue if the topic was created again or if the
    group has no committed offset and the queue begins at 0; and whether commits of such offsets are
    ignored. With `false`, as in RocketMQ 5, the consumer continues at the end. RocketMQ does not
    have this setting."""
    slave_read_enable: Now[bool] = False
    """On a slave: whether it serves pulls. On a master: whether a lagging consumer is directed to
    a slave, the one whose id is `whichBrokerWhenConsumeSlowly` in the settings of its group."""
    access_message_in_memory_max_ratio: Now[Percent] = 40
    """Percent of the machine's memory. Messages that are no further than that from the end of the
    log count as being in memory."""

    # Clients
    channel_expired_timeout: Now[Interval] = 120_000
    """The connection of a client that sends no heartbeat for this long is closed."""
    notify_consumer_ids_changed_enable: Now[bool] = True
    """Whether the members of a group are notified when a member joins or leaves."""
    store_reply_message_enable: Now[bool] = True
    """Whether replies of request-reply calls are also stored."""

    # Pop
    revive_queue_num: Restart[QueueCount] = 8
    """The number of queues of the topic that holds the check points of pops."""
    enable_retry_topic_v2: Now[bool] = msgspec.field(default=False, name="enableRetryTopicV2")
    """Whether pop consumers use retry topics with RocketMQ's newer names."""
    use_separate_retry_queue: Now[bool] = False
    """Whether a popped message that is not acknowledged is redelivered from the retry queue with
    the number of its original queue, instead of from queue 0."""
    pop_from_retry_probability: Now[Percent] = 20
    """Percent of the pops that read retry topics first. The others read them last."""
    pop_from_retry_probability_for_priority: Now[Percent] = 0
    """Like `popFromRetryProbability`, for pops that read queues by priority."""
    priority_order_asc: Now[bool] = True
    """Whether larger numbers are higher priorities. With `false`, 0 is the highest."""
    default_message_request_mode: Now[Literal["PULL", "POP"]] = "PULL"
    """Whether consumers to which the broker assigns queues pull or pop by default."""
    default_pop_share_queue_num: Now[Annotated[int, Within(-1, 4096)]] = -1
    """The number of members whose queues a pop consumer also reads, if no mode is set for its
    group; 0 or less for all."""
    pop_polling_size: Now[CountOrNone] = 1024
    """The maximum number of a group's pops that wait for one queue, or for all queues, of a
    topic."""
    max_pop_polling_size: Now[CountOrNone] = 100_000
    """The maximum number of waiting pops."""
    max_lmq_consume_queue_num: Now[CountOrNone] = 2_000_000
    """The maximum number of [lite topics](lite-topics.md), of all parent topics together."""
    max_lite_subscription_count: Now[CountOrNone] = 200_000
    """The maximum number of lite topics that clients are subscribed to, all clients together."""
    pop_ck_stay_buffer_time: Now[Pause] = 10_000
    """How long popped messages are kept only in memory, before their check point is written."""

    # Limits
    max_topic_nums: Now[Annotated[int, Within(1, 1_000_000)]] = 50_000
    """The maximum number of topics that clients can create. Retry and dead-letter topics of groups
    are created beyond it."""
    max_topic_queue_nums: Now[Annotated[int, Within(1, 65_535)]] = 4096
    """The maximum number of queues of a topic or of a group's retry topic."""
    max_subscription_group_nums: Now[Annotated[int, Within(1, 1_000_000)]] = 20_000
    """The maximum number of consumer groups that clients can create."""
    empty_group_expired_timeout: Now[CountOrNone] = 86_400_000
    """How long a consumer group that a client created is kept while it has no consumer, no offset,
    and no message to retry. 0: for ever."""
    max_group_config_size: Now[Annotated[int, Within(1_024, 1_048_576)]] = 16_384
    """The maximum size of a consumer group's configuration as JSON."""
    max_heartbeat_size: Now[Annotated[int, Within(4_096, 16_777_216)]] = 1 << 20
    """The maximum size of a heartbeat."""
    max_groups_per_heartbeat: Now[Annotated[int, Within(1, 1_000_000)]] = 1000
    """The maximum number of producer and consumer groups of one connection."""
    max_subscriptions_per_group: Now[Annotated[int, Within(1, 1_000_000)]] = 1000
    """The maximum number of topics that a consumer group subscribes to."""
    max_subscriptions_size: Now[Annotated[int, Within(65_536, 1_073_741_824)]] = 64 << 20
    """The maximum memory for the subscriptions of all groups."""
    max_client_nums: Now[Annotated[int, Within(1, 10_000_000)]] = 200_000
    """The maximum number of connected producers and consumers. A client counts once for each of its
    groups."""
    max_lock_batch_size: Now[Annotated[int, Within(1, 65_535)]] = 10_000
    """The maximum number of queues in one lock or unlock request."""
    max_lock_nums: Now[Annotated[int, Within(1, 10_000_000)]] = 100_000
    """The maximum number of locked queues."""
    max_consumer_offset_nums: Now[Annotated[int, Within(1_000, 10_000_000)]] = 500_000
    """The maximum number of consumer offsets: one for each group and queue."""
    pull_polling_size: Now[Annotated[int, Within(1, 16_384)]] = 10_000
    """The maximum number of waiting pulls of one connection."""
    max_pull_polling_size: Now[Annotated[int, Within(1, 1_000_000)]] = 64_000
    """The maximum number of waiting pulls."""
    max_answer_entries: Now[Annotated[int, Within(1_000, 1_000_000)]] = 100_000
    """The maximum number of queues or clients in the response to an administrative request, and of
    groups' settings to pull or to pop."""
    max_query_entries: Now[Annotated[int, Within(1_000, 100_000_000)]] = 1_000_000
    """The maximum number of index entries that one query by key examines; a message that it reads
    counts as 16."""
    max_query_scan_size: Now[Annotated[int, Within(1 << 20, 1 << 50)]] = 1 << 30
    """The maximum size of the log that one query by key searches if the index does not answer it;
    the file in which the limit is reached is searched to its end."""
    max_admin_body_size: Now[Annotated[int, Within(4_096, 16_777_216)]] = 2 << 20
    """The maximum size of an administrative request's body."""
    long_request_queue_capacity: Now[Annotated[int, Within(1, 100_000)]] = 1000
    """The maximum number of requests longer than 2 ms that wait for their turn."""

    # Limits of one address or user
    max_connections_per_address: Now[CountOrNone] = 0
    """The maximum number of connections of one address. 0: no limit. RocketMQ does not have these
    limits of addresses and users ([broker.md](broker.md#limits-of-addresses-and-users))."""
    max_connections_per_user: Now[CountOrNone] = 0
    """The maximum number of connections over which one user makes requests. 0: no limit. The limits
    of users need `authenticationEnabled`."""
    max_request_rate_per_address: Now[CountOrNone] = 0
    """The maximum number of requests of one address in a second. 0: no limit."""
    max_request_rate_per_user: Now[CountOrNone] = 0
    """The maximum number of requests of one user in a second. 0: no limit."""
    max_byte_rate_per_address: Now[CountOrNone] = 0
    """The maximum bytes in a second of one address: bodies of its requests, and answers. 0: no
    limit."""
    max_byte_rate_per_user: Now[CountOrNone] = 0
    """The maximum bytes in a second of one user: bodies of its requests, and answers. 0: no
    limit."""
    max_in_flight_per_address: Now[CountOrNone] = 0
    """The maximum number of requests of one address that wait for their answers; waiting pulls and
    pops count. 0: no limit."""
    max_in_flight_per_user: Now[CountOrNone] = 0
    """The maximum number of requests of one user that wait for their answers; waiting pulls and
    pops count. 0: no limit."""
    max_topics_per_address: Now[CountOrNone] = 0
    """The maximum number of topics that sends of one address create. 0: no limit."""
    max_topics_per_user: Now[CountOrNone] = 0
    """The maximum number of topics that sends of one user create. 0: no limit."""
    max_groups_per_address: Now[CountOrNone] = 0
    """The maximum number of consumer groups that the consumers of one address create. 0: no
    limit."""
    max_groups_per_user: Now[CountOrNone] = 0
    """The maximum number of consumer groups that the consumers of one user create. 0: no limit."""

    # Acting master
    enable_slave_acting_master: Restart[bool] = False
    """Whether the slave with the smallest id serves reads, offsets and locks while the master is
    gone, and whether the returning master adopts the slaves' offsets. Set it on all brokers of a
    name. No effect with `enableControllerMode`."""
    broker_not_active_timeout_millis: Restart[Interval] = 10_000
    """How long a name server considers this broker alive without a heartbeat, with
    `enableSlaveActingMaster`. It must be greater than `brokerHeartbeatInterval`."""
    sync_broker_member_group_period: Restart[Interval] = 1000
    """How often a slave asks the name servers which brokers of its name are alive, with
    `enableSlaveActingMaster`."""
    skip_pre_online: Restart[bool] = False
    """Whether a master with `enableSlaveActingMaster` starts without asking its slaves for their
    offsets."""

    # Controller
    controller_addr: Restart[Addresses] = ""
    """Addresses of the controllers, separated by `;`."""
    sync_broker_metadata_period: Restart[Interval] = 5000
    """How often the broker asks the controller which broker is the master. The controller also
    reports changes immediately."""
    broker_heartbeat_interval: Restart[Interval] = 1000
    """How often the broker sends a heartbeat to the controllers or, with
    `enableSlaveActingMaster`, to the name servers."""
    controller_heart_beat_timeout_mills: Restart[Interval] = 10_000
    """How long a controller considers this broker alive without a heartbeat."""
    broker_election_priority: Restart[Annotated[int, Within(0, INT_MAX)]] = INT_MAX
    """Of brokers with equally long logs, the one with the smallest number is elected."""

    # Access control
    authentication_enabled: Restart[bool] = False
    """Whether every request must be signed by a user."""
    authorization_enabled: Restart[bool] = False
    """Whether users need permissions for what they request. It needs `authenticationEnabled`."""
    init_authentication_user: Restart[auth.InitialUser] = ""
    """A super user that is created at the start if it does not exist. An existing user keeps its
    password. The broker never shows this setting."""
    authentication_whitelist: Restart[auth.RequestCodes] = ""
    """Codes of requests that need no signature."""
    authorization_whitelist: Restart[auth.RequestCodes] = ""
    """Codes of requests that need no permission."""
    acl_enable: Restart[bool] = False
    """Whether accounts in files decide who may make which request: RocketMQ's ACL 1.0
    ([security.md](security.md#acl-10)). It cannot be combined with `authenticationEnabled`."""
    rocketmq_home: Restart[PathOrEmpty] = ""
    """The directory that contains `conf/plain_acl.yml` and `conf/acl`. Empty: the directory that
    the variable `ROCKETMQ_HOME` names. Only `aclEnable` uses it."""
    max_user_nums: Restart[Annotated[int, Within(1, 100_000)]] = 1000
    """The maximum number of users."""
    max_acl_entry_nums: Restart[Annotated[int, Within(1, 100_000)]] = 1000
    """The maximum number of entries in the policies of one user."""

    # Connections
    max_connection_memory: Now[Annotated[int, Within(_LEAST_MEMORY, 1 << 40)]] = 192 << 20
    """The maximum memory of all connections together. Above it, the connections that use the most
    memory are closed."""
    proxy_protocol_addresses: Restart[Networks] = ""
    """Addresses and networks of proxies, separated by `;`, whose connections may begin with a
    header of the PROXY protocol, version 1 or 2, as HAProxy sends it before TLS. The address in it
    counts as the client's. Other connections with such a header are closed, because anybody could
    claim any address. `0.0.0.0/0;::/0` accepts it from everybody, as RocketMQ does."""

    # Monitoring
    metrics_exporter_type: Restart[MetricsExporter] = "DISABLE"
    """How metrics are published ([metrics.md](metrics.md)). PROM: `mqlake broker` serves
    `/metrics` for Prometheus, and `/livez` and `/readyz`, over HTTP; anyone who reaches the port
    may read them. OTLP_GRPC: it sends them to an OpenTelemetry collector. LOG: it logs them."""
    metrics_prom_exporter_host: Restart[ListenAddress] = ""
    """The address on which the pages are served; by default, the one on which the broker
    listens."""
    metrics_prom_exporter_port: Restart[Annotated[int, Within(1, LAST_PORT)]] = 5557
    """The port on which the pages are served."""
    metrics_grpc_exporter_target: Restart[MetricsTarget] = ""
    """OTLP_GRPC: the collector's `host:port`. TLS is used, unless it begins with `http://`."""
    metrics_grpc_exporter_header: Restart[MetricHeaders] = ""
    """OTLP_GRPC: headers of each request, such as `authorization:Bearer abc`. The broker
    never shows this setting."""
    metric_grpc_exporter_time_out_in_mills: Restart[Timeout] = 3000
    """OTLP_GRPC: how long an export may take."""
    metric_grpc_exporter_interval_in_mills: Restart[Interval] = 60_000
    """OTLP_GRPC: the time between two exports."""
    metrics_export_batch_max_data_points: Restart[Count] = 1000
    """OTLP_GRPC: the maximum number of data points in one request."""
    metric_logging_exporter_interval_in_mills: Restart[Interval] = 10_000
    """LOG: the time between two exports."""
    metrics_in_delta: Restart[bool] = False
    """OTLP_GRPC and LOG: whether totals and histograms are what was added since the last export
    that arrived, with the label `aggregation="delta"`."""
    metrics_label: Restart[MetricLabels] = ""
    """Further labels of all samples, such as `zone:a,rack:7`."""
    slow_request_millis: Restart[Annotated[int, Within(0, INT_MAX)]] = 0
    """Requests that take at least this long are logged as slow, with the client, the request and
    its answer. 0: none. Requests that wait for messages are never slow."""

    # Console
    console_port: Restart[Annotated[int, Within(0, LAST_PORT)]] = 0
    """The port of 127.0.0.1 for a web console ([console.md](console.md)) that also shows this
    broker's store, in a process of its own; usually 8280. 0: none."""

    # gRPC
    grpc_server_port: Restart[Annotated[int, Within(0, LAST_PORT)]] = 0
    """The port for RocketMQ 5's own clients, which speak gRPC ([grpc.md](grpc.md)); usually 8081.
    0: none."""
    grpc_max_inbound_message_size: Restart[Annotated[int, Within(1024, 256 << 20)]] = 8 << 20
    """The maximum bytes of a gRPC request to send messages; it may have twice `maxMessageSize` in
    any case. RocketMQ's default: 130 MiB, for every request."""
    grpc_max_inbound_request_size: Restart[Annotated[int, Within(1024, 256 << 20)]] = 1 << 20
    """The maximum bytes of any other gRPC request. RocketMQ has no such setting."""
    enable_topic_message_type_check: Restart[bool] = True
    """Whether messages over gRPC are refused whose type is not the one that the topic is for."""
    min_invisible_time_mills_for_recv: Restart[Interval] = 10_000
    """How long messages must be invisible at least that are received over gRPC."""
    default_invisible_time_mills: Restart[Interval] = 60_000
    """How long messages are invisible at first that push consumers receive over gRPC; it is
    extended while they are consumed. After a crash, a queue that is consumed in order may be held
    up for as long."""
    grpc_client_consumer_min_long_polling_timeout_millis: Restart[Pause] = 5000
    """How long a receive over gRPC waits for messages at least."""
    grpc_client_consumer_max_long_polling_timeout_millis: Restart[Interval] = 20_000
    """How long a receive over gRPC waits for messages at most."""

    # Name servers
    register_name_server_period: Now[Count] = 30_000
    """The interval of registrations. Values below 10 seconds count as 10 seconds, values above 60
    as 60 seconds. A change of topics is registered at once."""
    enable_split_registration: Now[bool] = False
    """Whether registrations have at most `splitRegistrationSize` topics. Registrations of more than
    4 MiB are split in any case."""
    split_registration_size: Now[Annotated[int, Within(2, 1_000_000)]] = 800
    """The maximum number of topics in one part of a registration, with `enableSplitRegistration`.
    A broker with more topics registers a changed topic alone."""
    enable_single_topic_register: Now[bool] = True
    """Whether changed topics that are registered alone are sent in requests of their own, which a
    name server with `deleteTopicWithBrokerRegistration` needs (RocketMQ's default: false)."""
    register_broker_timeout_mills: Now[Timeout] = 24_000
    """How long to wait for a name server's answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not FAST_PORT_DISTANCE < self.listen_port <= LAST_PORT:
            least = FAST_PORT_DISTANCE + 1
            raise StoreError(
                f"setting listenPort: {self.listen_port} is not between {least} and {LAST_PORT}"
            )
        self._check_role()
        silent = self.broker_not_active_timeout_millis
        if self.has_acting_master and self.broker_heartbeat_interval >= silent:
            raise StoreError(
                f"setting brokerHeartbeatInterval: {self.broker_heartbeat_interval} is not less "
                f"than brokerNotActiveTimeoutMillis, {silent}: name servers would remove the broker"
            )
        if self.enable_controller_mode and not self.controllers:
            raise StoreError(
                "setting controllerAddr: enableControllerMode needs the addresses of controllers"
            )
        auth.check(self)
        self._check_acl()
        wanted = self.store_path_commit_log
        if wanted and Path(wanted).expanduser() != self.store_path / "commitlog":
            raise StoreError(
                f"setting storePathCommitLog: {wanted} is not commitlog in storePathRootDir"
            )

    def _check_acl(self) -> None:
        if self.acl_enable and self.authentication_enabled:
            raise StoreError(
                "setting aclEnable: authenticationEnabled is on, too: choose one of them"
            )
        if self.acl_enable and self.acl_home is None:
            raise StoreError(
                "setting aclEnable: name the directory that contains conf/plain_acl.yml with"
                " rocketmqHome, or with the variable ROCKETMQ_HOME"
            )

    def _check_role(self) -> None:
        role = self.broker_role.value
        if self.is_slave and not self.broker_id:
            raise StoreError(
                f"setting brokerId: 0 is the master's; give this {role} a number of 1 or more"
            )
        if self.broker_id and not self.is_slave:
            raise StoreError(
                f"setting brokerId: {self.broker_id} is a slave's; a broker with brokerRole "
                f"{role} has 0"
            )

    @property
    def has_acting_master(self) -> bool:
        """Return whether a slave of this broker's name acts while the master is gone."""
        return self.enable_slave_acting_master and not self.enable_controller_mode

    @property
    def acl_home(self) -> Path | None:
        """Return the directory whose `conf` contains the files of ACL 1.0, None if unknown."""
        text = self.rocketmq_home or os.environ.get("ROCKETMQ_HOME", "")
        return Path(text).expanduser() if text else None

    @property
    def store_path(self) -> Path:
        """Return the directory of the store."""
        return Path(self.store_path_root_dir).expanduser()

    @property
    def broker_address(self) -> str:
        """Return the address at which clients reach the broker: "address:port"."""
        address = self.broker_ip1
        return f"{f'[{address}]' if ':' in address else address}:{self.listen_port}"

    @property
    def controllers(self) -> list[str]:
        """Return the addresses of all controllers."""
        return [part.strip() for part in self.controller_addr.split(";") if part.strip()]

    @property
    def name_servers(self) -> list[str]:
        """Return the addresses of all name servers."""
        return [part.strip() for part in self.namesrv_addr.split(";") if part.strip()]


def _names(effect: Effect) -> frozenset[str]:
    fields = msgspec.structs.fields(BrokerSettings)
    return frozenset(
        field.encode_name for field in fields if effects(BrokerSettings).get(field.name) is effect
    )


ROLE = frozenset(("brokerRole", "brokerId"))
"""The names of the settings whose change promotes or demotes a running broker."""
NOW, RESTART = _names(Effect.NOW), _names(Effect.RESTART) - ROLE
"""The names of the settings that take effect at once, and only at a restart."""


def make_broker_settings(
    values: BrokerSettings | Mapping[str, object] | str | os.PathLike[str] | None,
) -> BrokerSettings:
    """Return settings from a mapping (names of `broker.conf` or of the attributes) or a file.

    Names that mqlake does not know cause a warning, and are ignored.

    Raises:
        StoreError: a setting has an invalid value, or a file cannot be read.
    """
    return settings_of(BrokerSettings, values)
