"""The transport options of a connection, and its name servers."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Annotated, Any, cast

import msgspec

from mqlake.kombu.border import Connection
from mqlake.kombu.errors import ConfigurationError
from mqlake.kombu.names import prefix_fault
from mqlake.protocol.naming import group_fault
from mqlake.remoting.tls.options import ClientTls, Verify

DEFAULT_PORT = 9876
_SSL = frozenset(("ca_certs", "certfile", "keyfile", "password", "cert_reqs", "check_hostname"))
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


def client_tls(connection: Connection, *, is_needed: bool) -> ClientTls | None:
    """Return how a connection uses TLS: `broker_use_ssl`, with the names of Python's `ssl`.

    Args:
        is_needed: whether the URL says so; else only `broker_use_ssl` does.

    Raises:
        ConfigurationError: `broker_use_ssl` has an unknown name.
    """
    given = connection.ssl
    if not given:
        return ClientTls() if is_needed else None
    is_mapping = isinstance(given, Mapping)
    values = dict(cast("Mapping[str, Any]", given)) if is_mapping else {}
    if unknown := sorted(set(values) - _SSL):
        raise ConfigurationError(
            f"broker_use_ssl: {', '.join(unknown)}: not known; use {', '.join(sorted(_SSL))}"
        )
    verify = Verify.FULL if values.get("check_hostname", True) else Verify.CA
    if values.get("cert_reqs", ssl.CERT_REQUIRED) != ssl.CERT_REQUIRED:
        verify = Verify.NONE
    return ClientTls(
        ca=str(values.get("ca_certs") or ""),
        cert=str(values.get("certfile") or ""),
        key=str(values.get("keyfile") or ""),
        key_password=str(values.get("password") or ""),
        verify=verify,
    )


def name_servers(connection: Connection) -> str:
    """Return the name servers of a broker URL: "host:port", several separated by `;`.

    Raises:
        ConfigurationError: the URL has a part that this transport does not support.
    """
    if connection.userid or connection.password:
        raise ConfigurationError("broker URL: user and password are not supported: there is no ACL")
    if (connection.virtual_host or "/") != "/":
        raise ConfigurationError("broker URL: the path must be empty; use the option topic_prefix")
    # kombu splits "rocketmq://a;b/" at the semicolon, and fails over from one to the next. All are
    # name servers of one cluster, whichever of them kombu uses currently.
    parts = connection.alt or [f"{connection.hostname or 'localhost'}:{connection.port or ''}"]
    return ";".join(_address(number, part) for number, part in enumerate(parts, 1))


def _address(number: int, part: str) -> str:
    host = part.partition("://")[2] if "://" in part else part
    host, _, path = host.partition("/")
    address = f"{host.removesuffix(':')}:{DEFAULT_PORT}" if ":" not in host[:-1] else host
    if path or not _ADDRESS.fullmatch(address) or int(address.rpartition(":")[2]) > 65_535:
        # The part itself may contain a password.
        raise ConfigurationError(f"broker URL: name server {number} is not host:port")
    return address
