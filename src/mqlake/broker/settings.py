"""Settings of a broker: those of its store, and what concerns its clients.

Upstream: `BrokerConfig`, `BrokerIdentity`, `NettyServerConfig`. One `broker.conf` names them all.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec

from mqlake.errors import StoreError
from mqlake.formats.config.topics import PERM_READ, PERM_WRITE
from mqlake.formats.topic_names import TRACE_TOPIC
from mqlake.store.bounds import (
    Addresses,
    Count,
    CountOrNone,
    Effect,
    Interval,
    IPAddressOrEmpty,
    Label,
    ListenAddress,
    Name,
    Networks,
    Now,
    PathOrEmpty,
    PathText,
    Pause,
    Percent,
    Port,
    Restart,
    Timeout,
    Within,
    effects,
)
from mqlake.store.settings import StoreSettings, settings_of

FAST_PORT_DISTANCE = 2
"""So far below `listenPort` lies the port for clients with `vipChannelEnabled`."""
LAST_PORT = 0xFFFF
_LEAST_MEMORY = 32 << 20
"""Bytes of connections: two frames may need that."""

_YEAR_2100 = 4_102_444_800_000
QueueCount = Annotated[int, Within(1, 4096)]
"""Queues of a topic."""


_IN_MEMORY = (
    "What is popped is always kept in memory first, and its acknowledgements are joined there, for"
    " `popCkStayBufferTime` at most. With 0 each pop writes its check point at once."
)
_BY_TIMER = "Check points are looked at when the timer delivers them, so nothing scans for them."
_ROCKSDB = "There is no variant on RocksDB."

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
    "retrieveMessageFromPopRetryTopicV1": (
        "With `enableRetryTopicV2` each pop looks into the retry topics of both names."
    ),
}
"""Names of RocketMQ's that are accepted, and why they mean nothing here."""


class BrokerSettings(StoreSettings, frozen=True, rename="camel", kw_only=True):
    """Who a broker is, what it allows, and how it treats its clients.

    Each field declares whether it may change in a running broker (`Now`, `Restart`). Times are
    milliseconds, sizes bytes, where nothing else is said.
    """

    without_effect: ClassVar[Mapping[str, str]] = WITHOUT_EFFECT

    # Who and where
    broker_cluster_name: Restart[Name] = "DefaultCluster"
    broker_name: Restart[Name] = msgspec.field(default_factory=socket.gethostname)
    broker_id: Restart[CountOrNone] = 0
    """0 for a master; 1 or more for a slave, another one for each slave of a master. It may change
    with `brokerRole`."""
    namesrv_addr: Restart[Addresses] = ""
    """Name servers, separated by `;`."""
    bind_address: Restart[ListenAddress] = ""
    """Address to listen on; without it the loopback if `brokerIP1` is one, else all addresses."""
    store_path_root_dir: Restart[PathText] = "~/store"
    """Directory of the store, made where there is none."""
    store_path_commit_log: Restart[PathOrEmpty] = ""
    """Only where RocketMQ has it by itself: `commitlog` in the root directory."""
    region_id: Now[Label] = "DefaultRegion"
    """Stored with every message, and told to producers."""
    trace_on: Now[bool] = True
    """Told to producers: whether they are to trace what they send."""

    # Topics and groups
    broker_permission: Now[Annotated[int, Within(0, 7)]] = PERM_READ | PERM_WRITE
    """2 to write, 4 to read, 6 for both: what clients may do with any topic."""
    default_topic_queue_nums: Now[QueueCount] = 8
    """Most queues of a topic that a producer makes by sending to it."""
    auto_create_topic_enable: Now[bool] = True
    """Whether sending to a topic that is missing makes it."""
    auto_create_subscription_group: Now[bool] = True
    """Whether consuming in a group that is missing makes it."""
    enable_create_sys_group: Now[bool] = True
    cluster_topic_enable: Now[bool] = True
    broker_topic_enable: Now[bool] = True
    trace_topic_enable: Now[bool] = False
    """Whether there is a topic for message traces from the start."""
    msg_trace_topic_name: Restart[Name] = TRACE_TOPIC
    validate_system_topic_when_update_topic: Now[bool] = True
    clear_retry_topic_when_delete_topic: Now[bool] = True

    # Send
    reject_transaction_message: Now[bool] = False
    """Whether half messages are refused."""
    recall_message_enable: Now[bool] = False
    """Whether producers may take back messages that wait for a delivery time."""
    allow_recall_when_broker_not_writeable: Now[bool] = True
    """Whether they may do so while `brokerPermission` does not allow to write."""
    start_accept_send_request_time_stamp: Now[Annotated[int, Within(0, _YEAR_2100)]] = 0
    """Milliseconds since 1970 before which no message is accepted: sends are answered with that
    time. The broker logs it when it starts."""
    send_thread_pool_queue_capacity: Now[Count] = 10_000
    """How many sends may wait for the disk before others are answered as busy."""

    # Static topics
    forward_timeout: Now[Timeout] = 3000
    """How long another broker has to answer for its part of a static topic's queue."""

    # Pull
    long_polling_enable: Now[bool] = True
    short_polling_time_mills: Now[Timeout] = 1000
    reject_pull_consumer_enable: Now[bool] = False
    enable_property_filter: Now[bool] = True
    """Whether consumers may filter by SQL92. Off in RocketMQ, where it has to be asked for."""
    max_filter_expression_size: Now[Annotated[int, Within(64, 32_768)]] = 4096
    """Longest SQL92 or tag expression in characters; parsing one takes about 12 microseconds a
    character, in which nobody else is served."""
    lite_pull_message_enable: Now[bool] = True
    use_server_side_reset_offset: Now[bool] = True
    slave_read_enable: Now[bool] = False
    """On a slave: whether it serves pulls. On a master: whether a consumer that lags is sent to
    the slave `whichBrokerWhenConsumeSlowly` of its group."""
    access_message_in_memory_max_ratio: Now[Percent] = 40
    """Percent of the machine's memory; messages nearer to the log's end count as being in it."""

    # Clients
    channel_expired_timeout: Now[Interval] = 120_000
    """After so long without a heartbeat a client is forgotten."""
    notify_consumer_ids_changed_enable: Now[bool] = True
    store_reply_message_enable: Now[bool] = True

    # Pop
    revive_queue_num: Restart[QueueCount] = 8
    enable_retry_topic_v2: Now[bool] = msgspec.field(default=False, name="enableRetryTopicV2")
    use_separate_retry_queue: Now[bool] = False
    """Whether what is popped and not acknowledged comes again from a queue of the number that it
    had, instead of from queue 0 of the retry topic."""
    pop_from_retry_probability: Now[Percent] = 20
    """How many percent of the pops look into retry topics first; the others do so last."""
    pop_from_retry_probability_for_priority: Now[Percent] = 0
    """The same for pops that read queues by priority."""
    priority_order_asc: Now[bool] = True
    """Whether larger numbers are higher priorities; else 0 is the highest."""
    default_message_request_mode: Now[Literal["PULL", "POP"]] = "PULL"
    default_pop_share_queue_num: Now[Annotated[int, Within(-1, 4096)]] = -1
    pop_polling_size: Now[CountOrNone] = 1024
    """How many pops of a group may wait for one queue."""
    max_pop_polling_size: Now[CountOrNone] = 100_000
    """How many pops may wait at all."""
    pop_ck_stay_buffer_time: Now[Pause] = 10_000
    """How long what was popped is known in memory only."""

    # Limits
    max_topic_nums: Now[Annotated[int, Within(1, 1_000_000)]] = 50_000
    """How many topics there may be before clients can create no others; retry and dead-letter
    topics of groups are created all the same."""
    max_topic_queue_nums: Now[Annotated[int, Within(1, 65_535)]] = 4096
    """Most queues that a topic, or a group's retry topic, may be given."""
    max_subscription_group_nums: Now[Annotated[int, Within(1, 1_000_000)]] = 20_000
    """How many consumer groups there may be before clients can create no others."""
    max_group_config_size: Now[Annotated[int, Within(1_024, 1_048_576)]] = 16_384
    """Longest configuration of a consumer group as JSON."""
    max_heartbeat_size: Now[Annotated[int, Within(4_096, 16_777_216)]] = 1 << 20
    """Longest heartbeat."""
    max_groups_per_heartbeat: Now[Annotated[int, Within(1, 1_000_000)]] = 1000
    """How many groups of producers and consumers a connection may be in."""
    max_subscriptions_per_group: Now[Annotated[int, Within(1, 1_000_000)]] = 1000
    """How many topics a consumer group may subscribe to."""
    max_subscriptions_size: Now[Annotated[int, Within(65_536, 1_073_741_824)]] = 64 << 20
    """Most memory for what all groups subscribe to."""
    max_client_nums: Now[Annotated[int, Within(1, 10_000_000)]] = 200_000
    """How many producers and consumers may be connected; a client counts once for each group that
    it is in."""
    max_lock_batch_size: Now[Annotated[int, Within(1, 65_535)]] = 10_000
    """How many queues a client may lock or unlock with one request."""
    max_lock_nums: Now[Annotated[int, Within(1, 10_000_000)]] = 100_000
    """How many queues may be locked in all."""
    max_consumer_offset_nums: Now[Annotated[int, Within(1_000, 10_000_000)]] = 500_000
    """How many offsets of groups in queues are kept."""
    pull_polling_size: Now[Annotated[int, Within(1, 16_384)]] = 10_000
    """How many pulls of one connection may wait."""
    max_pull_polling_size: Now[Annotated[int, Within(1, 1_000_000)]] = 64_000
    """How many pulls may wait at all."""
    max_answer_entries: Now[Annotated[int, Within(1_000, 1_000_000)]] = 100_000
    """How many queues or clients one answer to an administrative request may list."""
    max_admin_body_size: Now[Annotated[int, Within(4_096, 16_777_216)]] = 2 << 20
    """Longest body of an administrative request."""
    long_request_queue_capacity: Now[Annotated[int, Within(1, 100_000)]] = 1000
    """How many requests that take longer than 2 ms may wait for their turn."""

    # Replication
    ha_listen_port: Restart[Port] = 0
    """Port for slaves. 0: `listenPort` + 1 if that is free, which RocketMQ has as 10912."""
    broker_ip2: Restart[IPAddressOrEmpty] = msgspec.field(default="", name="brokerIP2")
    """The address of this machine that slaves are told; without it, `brokerIP1`."""
    ha_allowed_addresses: Restart[Networks] = ""
    """Addresses and networks of slaves, separated by `;`, such as `10.0.0.7;10.1.0.0/16`; without
    any, everyone who reaches the port is given the commit log (mqlake's own)."""
    ha_master_address: Restart[Addresses] = ""
    """The "host:port" of the master's port for slaves; without it, the name server tells it."""
    ha_send_heartbeat_interval: Restart[Interval] = 5000
    ha_housekeeping_interval: Restart[Interval] = 20_000
    """After so long without a byte either side closes the connection."""
    ha_transfer_batch_size: Restart[Annotated[int, Within(1, 1 << 24)]] = 32 << 10
    """Most bytes of the commit log in one frame."""
    ha_flow_control_enable: Restart[bool] = False
    """Whether each slave is sent `maxHaTransferByteInSecond` at most."""
    max_ha_transfer_byte_in_second: Restart[Annotated[int, Within(1024, 1 << 40)]] = 100 << 20

    # Connections
    max_connection_memory: Now[Annotated[int, Within(_LEAST_MEMORY, 1 << 40)]] = 192 << 20
    """Bytes held for all connections together before the greediest are closed."""

    # Name servers
    register_name_server_period: Now[Count] = 30_000
    """10 to 60 seconds; a change of topics is told at once."""
    register_broker_timeout_mills: Now[Timeout] = 24_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not FAST_PORT_DISTANCE < self.listen_port <= LAST_PORT:
            least = FAST_PORT_DISTANCE + 1
            raise StoreError(
                f"setting listenPort: {self.listen_port} is not within {least} and {LAST_PORT}"
            )
        self._check_role()
        wanted = self.store_path_commit_log
        if wanted and Path(wanted).expanduser() != self.store_path / "commitlog":
            raise StoreError(
                f"setting storePathCommitLog: {wanted} is not commitlog in storePathRootDir"
            )

    def _check_role(self) -> None:
        role = self.broker_role.value
        if self.is_slave and not self.broker_id:
            raise StoreError(f"setting brokerId: 0 is the master's; give this {role} 1 or more")
        if self.broker_id and not self.is_slave:
            raise StoreError(
                f"setting brokerId: {self.broker_id} is a slave's; brokerRole {role} has 0"
            )

    @property
    def store_path(self) -> Path:
        """Return the directory of the store."""
        return Path(self.store_path_root_dir).expanduser()

    @property
    def broker_address(self) -> str:
        """Return where clients reach the broker: "address:port"."""
        address = self.broker_ip1
        return f"{f'[{address}]' if ':' in address else address}:{self.listen_port}"

    @property
    def listen_address(self) -> str:
        """Return the address to listen on."""
        if self.bind_address:
            return self.bind_address
        return self.broker_ip1 if ip_address(self.broker_ip1).is_loopback else "0.0.0.0"  # noqa: S104

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
"""The names of the settings whose change promotes or demotes a broker that runs."""
NOW, RESTART = _names(Effect.NOW), _names(Effect.RESTART) - ROLE
"""The names of the settings that take effect at once, and at a restart only."""


def make_broker_settings(
    values: BrokerSettings | Mapping[str, object] | str | os.PathLike[str] | None,
) -> BrokerSettings:
    """Return settings from a mapping (names of `broker.conf` or of the attributes) or a file.

    Names that mqlake does not know warn, and are left alone.

    Raises:
        StoreError: a value that its setting cannot have, or a file that cannot be read.
    """
    return settings_of(BrokerSettings, values)
