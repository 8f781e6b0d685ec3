"""Who is connected to a broker.

Upstream: `ConsumerConnection`, `ProducerConnection`, `ProducerTableInfo`, `GroupList`.
"""

from __future__ import annotations

import msgspec

from mqlake.protocol.bodies.heartbeat import Subscription


class ClientConnection(msgspec.Struct, rename="camel"):
    """A client; `language` and `version` as it states them (`LanguageCode`, `MQVersion`)."""

    client_id: str = ""
    client_addr: str = ""
    language: str = ""
    version: int = 0


class ConsumerConnections(msgspec.Struct, rename="camel"):
    """The answer to GET_CONSUMER_CONNECTION_LIST."""

    connection_set: list[ClientConnection] = []
    subscription_table: dict[str, Subscription] = {}
    consume_type: str = ""
    message_model: str = ""
    consume_from_where: str = ""


class ProducerConnections(msgspec.Struct, rename="camel"):
    """The answer to GET_PRODUCER_CONNECTION_LIST."""

    connection_set: list[ClientConnection] = []


class ProducerInfo(msgspec.Struct, rename="camel"):
    """A producer and when it last sent a heartbeat, milliseconds."""

    client_id: str = ""
    remote_ip: str = msgspec.field(name="remoteIP", default="")
    language: str = ""
    version: int = 0
    last_update_timestamp: int = 0


class ProducerTable(msgspec.Struct, rename="camel"):
    """The answer to GET_ALL_PRODUCER_INFO: by group."""

    data: dict[str, list[ProducerInfo]] = {}


class GroupList(msgspec.Struct, rename="camel"):
    """Names of groups."""

    group_list: list[str] = []
