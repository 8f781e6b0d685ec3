"""The transport options of a connection, and its name servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from mqlake.kombu.access import without_user
from mqlake.kombu.border import KombuConnection
from mqlake.kombu.errors import ConfigurationError
from mqlake.kombu.names import prefix_fault
from mqlake.protocol.naming import group_fault

DEFAULT_PORT = 9876
_ADDRESS = re.compile(r"[A-Za-z0-9_.-]+:[0-9]{1,5}")


class TransportSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `broker_transport_options`.

    Attributes:
        visibility_timeout: seconds after which the messages of a dead worker are redelivered; a
            live worker extends it for as long as it needs a message.
        group: the consumer group of all queues.
        topic_prefix: begins the name of each topic, so that applications can share a cluster.
        queues_per_topic: queues of a topic that this transport creates, on each broker.
        broker_eta: whether brokers keep tasks with an ETA until they are due.
        max_delay: the maximum of seconds that brokers keep a message (`timerMaxDelaySec`).
    """

    visibility_timeout: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 120.0
    group: str = "celery"
    topic_prefix: str = ""
    queues_per_topic: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 8
    broker_eta: bool = True
    max_delay: Annotated[float, msgspec.Meta(ge=0)] = 3 * 86_400 - 60


def transport_settings(options: Mapping[str, Any]) -> TransportSettings:
    """Return the settings among the transport options of a connection.

    Raises:
        ConfigurationError: a value cannot be used.
    """
    known = {name: options[name] for name in TransportSettings.__struct_fields__ if name in options}
    try:
        settings = msgspec.convert(known, TransportSettings)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"broker_transport_options: {error}") from None
    if fault := group_fault(settings.group) or prefix_fault(settings.topic_prefix):
        raise ConfigurationError(f"broker_transport_options: {fault}")
    return settings


def name_servers(connection: KombuConnection) -> str:
    """Return the name servers of a broker URL: "host:port", several separated by `;`.

    Raises:
        ConfigurationError: the URL has a part that this transport does not support.
    """
    if (connection.virtual_host or "/") != "/":
        raise ConfigurationError("broker URL: the path must be empty; use the option topic_prefix")
    # kombu splits "rocketmq://a;b/" at the semicolon, and fails over from one to the next. All are
    # name servers of one cluster, whichever of them kombu uses currently.
    parts = connection.alt or [f"{connection.hostname or 'localhost'}:{connection.port or ''}"]
    return ";".join(_address(number, part) for number, part in enumerate(parts, 1))


def _address(number: int, part: str) -> str:
    host = without_user(part).rpartition("://")[2]
    host, _, path = host.partition("/")
    address = f"{host.removesuffix(':')}:{DEFAULT_PORT}" if ":" not in host[:-1] else host
    if path or not _ADDRESS.fullmatch(address) or int(address.rpartition(":")[2]) > 65_535:
        # The part itself may contain a password.
        raise ConfigurationError(f"broker URL: name server {number} is not host:port")
    return address
