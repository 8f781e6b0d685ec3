"""Settings of a broker: those of its store, and what concerns its clients.

Upstream: `BrokerConfig`, `BrokerIdentity`, `NettyServerConfig`. One `broker.conf` names them all.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

import msgspec

from mqlake.errors import StoreError
from mqlake.formats.config.topics import PERM_READ, PERM_WRITE
from mqlake.formats.topic_names import TRACE_TOPIC
from mqlake.store.settings import StoreSettings, settings_of

FAST_PORT_DISTANCE = 2
"""So far below `listenPort` lies the port for clients with `vipChannelEnabled`."""
HA_PORT_DISTANCE = 1
LAST_PORT = 0xFFFF
_LEAST_MEMORY = 32 * 1024 * 1024


class BrokerSettings(StoreSettings, frozen=True, rename="camel", kw_only=True):
    """Who a broker is, what it allows, and how it treats its clients.

    Times are milliseconds, sizes bytes, where nothing else is said.
    """

    # Who and where
    broker_cluster_name: str = "DefaultCluster"
    broker_name: str = msgspec.field(default_factory=socket.gethostname)
    broker_id: int = 0
    """Only 0, a master."""
    namesrv_addr: str = ""
    """Name servers, separated by `;`."""
    bind_address: str = ""
    """Address to listen on; without it the loopback if `brokerIP1` is one, else all addresses."""
    store_path_root_dir: str = "~/store"
    """Directory of the store, made where there is none."""
    store_path_commit_log: str = ""
    """Only where RocketMQ has it by itself: `commitlog` in the root directory."""
    region_id: str = "DefaultRegion"
    """Stored with every message, and told to producers."""
    trace_on: bool = True
    """Told to producers: whether they are to trace what they send."""

    # Topics and groups
    broker_permission: int = PERM_READ | PERM_WRITE
    """2 to write, 4 to read, 6 for both: what clients may do with any topic."""
    default_topic_queue_nums: int = 8
    """Most queues of a topic that a producer makes by sending to it."""
    auto_create_topic_enable: bool = True
    """Whether sending to a topic that is missing makes it."""
    auto_create_subscription_group: bool = True
    """Whether consuming in a group that is missing makes it."""
    enable_create_sys_group: bool = True
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    trace_topic_enable: bool = False
    """Whether there is a topic for message traces from the start."""
    msg_trace_topic_name: str = TRACE_TOPIC
    validate_system_topic_when_update_topic: bool = True
    clear_retry_topic_when_delete_topic: bool = True

    # Send
    reject_transaction_message: bool = False
    """Whether half messages are refused."""
    start_accept_send_request_time_stamp: int = 0
    """Milliseconds since 1970 before which no message is taken."""
    send_thread_pool_queue_capacity: int = 10_000
    """How many sends may wait for the disk before others are answered as busy."""

    # Pull
    long_polling_enable: bool = True
    short_polling_time_mills: int = 1000
    reject_pull_consumer_enable: bool = False
    enable_property_filter: bool = True
    """Whether consumers may filter by SQL92. Off in RocketMQ, where it has to be asked for."""
    lite_pull_message_enable: bool = True
    use_server_side_reset_offset: bool = True

    # Clients
    channel_expired_timeout: int = 120_000
    """After so long without a heartbeat a client is forgotten."""
    notify_consumer_ids_changed_enable: bool = True
    store_reply_message_enable: bool = True

    # Pop
    revive_queue_num: int = 8
    enable_retry_topic_v2: bool = msgspec.field(default=False, name="enableRetryTopicV2")
    default_message_request_mode: Literal["PULL", "POP"] = "PULL"
    default_pop_share_queue_num: int = -1
    pop_polling_size: int = 1024
    """How many pops of a group may wait for one queue."""
    max_pop_polling_size: int = 100_000
    """How many pops may wait at all."""
    pop_ck_stay_buffer_time: int = 10_000
    """How long what was popped is known in memory only."""

    # Connections
    max_connection_memory: int = 192 * 1024 * 1024
    """Bytes held for all connections together before the greediest are closed; 32 MiB at least."""

    # Name servers
    register_name_server_period: int = 30_000
    """10 to 60 seconds; a change of topics is told at once."""
    register_broker_timeout_mills: int = 24_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not FAST_PORT_DISTANCE < self.listen_port <= LAST_PORT:
            least = FAST_PORT_DISTANCE + 1
            raise StoreError(
                f"setting listenPort: {self.listen_port} is not within {least} and {LAST_PORT}"
            )
        if self.max_connection_memory < _LEAST_MEMORY:
            raise StoreError(
                f"setting maxConnectionMemory: {self.max_connection_memory} is below"
                f" {_LEAST_MEMORY}, and two frames may need that"
            )
        if not _is_address(self.broker_ip1):
            raise StoreError(f"setting brokerIP1: {self.broker_ip1!r} is no IP address")
        if not (self.broker_name.strip() and self.broker_cluster_name.strip()):
            raise StoreError("settings brokerName and brokerClusterName must not be blank")
        if self.broker_id:
            raise StoreError(f"setting brokerId: {self.broker_id} is a slave's; masters have 0")
        wanted = self.store_path_commit_log
        if wanted and Path(wanted).expanduser() != self.store_path / "commitlog":
            raise StoreError(
                f"setting storePathCommitLog: {wanted} is not commitlog in storePathRootDir"
            )

    @property
    def store_path(self) -> Path:
        """Return the directory of the store."""
        return Path(self.store_path_root_dir).expanduser()

    @property
    def broker_address(self) -> str:
        """Return where clients reach the broker: "address:port"."""
        return self._at(self.listen_port)

    @property
    def ha_address(self) -> str:
        """Return where a slave would reach the broker; nothing listens there."""
        return self._at(self.listen_port + HA_PORT_DISTANCE)

    def _at(self, port: int) -> str:
        address = self.broker_ip1
        return f"{f'[{address}]' if ':' in address else address}:{port}"

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


def _is_address(text: str) -> bool:
    """Say whether a text is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def make_broker_settings(
    values: BrokerSettings | Mapping[str, object] | str | os.PathLike[str] | None,
) -> BrokerSettings:
    """Return settings from a mapping (names of `broker.conf` or of the attributes) or a file.

    Names that mqlake does not know warn, and are left alone.

    Raises:
        StoreError: a value that its setting cannot have, or a file that cannot be read.
    """
    return settings_of(BrokerSettings, values)
