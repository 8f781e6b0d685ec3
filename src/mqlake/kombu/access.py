"""How a connection reaches its servers: TLS, and the user in whose name requests are signed."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

from mqlake.client.access import ClientAccess
from mqlake.kombu.border import KombuConnection
from mqlake.kombu.errors import ConfigurationError
from mqlake.protocol.signature import Credentials
from mqlake.remoting.tls.options import ClientTls, Verify

USER, PASSWORD = "access_key", "secret_key"
"""The transport options with the user and its password, for those who keep them out of URLs."""

_SSL = frozenset(("ca_certs", "certfile", "keyfile", "password", "cert_reqs", "check_hostname"))


def access_of(connection: KombuConnection, *, needs_tls: bool) -> ClientAccess:
    """Return how a connection reaches its servers.

    Args:
        needs_tls: whether the URL says that TLS is used; else only `broker_use_ssl` does.

    Raises:
        ConfigurationError: a setting cannot be used. The message contains no password.
    """
    return ClientAccess(
        tls=_tls(connection, is_needed=needs_tls), credentials=_credentials(connection)
    )


def without_user(part: str) -> str:
    """Return the part of a URL for one name server without its user and password."""
    scheme, separator, rest = part.rpartition("://")
    authority, slash, path = rest.partition("/")
    return scheme + separator + authority.rpartition("@")[2] + slash + path


def _tls(connection: KombuConnection, *, is_needed: bool) -> ClientTls | None:
    """Read `broker_use_ssl`, which has the names of Python's `ssl`."""
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


def _credentials(connection: KombuConnection) -> Credentials | None:
    """Return the user of the URL, or of the transport options."""
    options = connection.transport_options
    found = {
        "the broker URL": (connection.userid or "", str(connection.password or "")),
        "broker_transport_options": (
            str(options.get(USER) or ""),
            str(options.get(PASSWORD) or ""),
        ),
    }
    for number, part in enumerate(connection.alt, 1):
        found[f"name server {number} of the broker URL"] = _user_of(part)
    users = {place: pair for place, pair in found.items() if any(pair)}
    for place, pair in users.items():
        if not all(pair):
            missing = "password" if pair[0] else "user"
            raise ConfigurationError(
                f"{place} has no {missing}: give both, as user:password@ in the URL, or as {USER}"
                f" and {PASSWORD} in broker_transport_options"
            )
    if len(set(users.values())) > 1:
        raise ConfigurationError(
            f"{' and '.join(users)} have different users or passwords: give one user, which is"
            " used for all servers of the cluster"
        )
    return Credentials(*next(iter(users.values()))) if users else None


def _user_of(part: str) -> tuple[str, str]:
    """Return the user and the password in the part of a URL for one name server."""
    authority = part.rpartition("://")[2].partition("/")[0]
    user, _, password = authority.rpartition("@")[0].partition(":")
    return unquote(user), unquote(password)
