"""Where topics and brokers are: what a name server answers."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class QueueData(msgspec.Struct, gc=False, rename="camel"):
    """The queues of a topic on one broker name; `perm` as in `mqlake.formats.config.topics`."""

    broker_name: str = ""
    read_queue_nums: int = 0
    write_queue_nums: int = 0
    perm: int = 0
    topic_sys_flag: int = 0


class BrokerData(msgspec.Struct, rename="camel"):
    """The brokers of one name: "host:port" by broker id, 0 for the master."""

    cluster: str = ""
    broker_name: str = ""
    broker_addrs: dict[int, str] = {}
    zone_name: str | UnsetType = UNSET
    enable_acting_master: bool = False


class TopicQueueMappingInfo(msgspec.Struct, gc=False, rename="camel"):
    """Which queues of a static topic a broker name holds: physical by logical queue id."""

    topic: str = ""
    scope: str = "__global__"
    total_queues: int = 0
    bname: str = ""
    epoch: int = 0
    dirty: bool = False
    curr_id_map: dict[int, int] = {}


class TopicRouteData(msgspec.Struct, rename="camel"):
    """Where a topic's queues are."""

    queue_datas: list[QueueData] = []
    broker_datas: list[BrokerData] = []
    filter_server_table: dict[str, list[str]] = {}
    order_topic_conf: str | UnsetType = UNSET
    """Ordered topics: "name:queues" of each broker, separated by `;`."""
    topic_queue_mapping_by_broker: dict[str, TopicQueueMappingInfo] | UnsetType = UNSET


class ClusterInfo(msgspec.Struct, rename="camel"):
    """All brokers by name, and their names by cluster."""

    broker_addr_table: dict[str, BrokerData] = {}
    cluster_addr_table: dict[str, list[str]] = {}


class BrokerMemberGroup(msgspec.Struct, rename="camel"):
    """The brokers of one name."""

    cluster: str = ""
    broker_name: str = ""
    broker_addrs: dict[int, str] = {}


class BrokerMemberGroupBody(msgspec.Struct, rename="camel"):
    """What GET_BROKER_MEMBER_GROUP answers."""

    broker_member_group: BrokerMemberGroup


class TopicList(msgspec.Struct, rename="camel"):
    """Names of topics; `broker_addr` only where the system's topics were asked for."""

    topic_list: list[str] = []
    broker_addr: str | UnsetType = UNSET


class KVTable(msgspec.Struct, rename="camel"):
    """Names and values."""

    table: dict[str, str] = {}
