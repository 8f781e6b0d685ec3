"""How servers and clients use TLS.

Upstream: `TlsSystemConfig`.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import msgspec

_SECRET: Final = frozenset(("key_password",))


class TlsMode(Enum):
    """Which connections a server accepts (`tls.server.mode`)."""

    DISABLED = "disabled"
    """Those without TLS."""
    PERMISSIVE = "permissive"
    """Those with and without TLS, on the same port."""
    ENFORCING = "enforcing"
    """Those with TLS."""


class ClientAuth(Enum):
    """Whether a server asks clients for a certificate (`tls.server.need.client.auth`)."""

    NONE = "none"
    OPTIONAL = "optional"
    """A client may have none; if it sends one, a trusted authority must have signed it."""
    REQUIRE = "require"


class Verify(Enum):
    """What a client checks of a server's certificate."""

    FULL = "full"
    """A trusted authority has signed it, and it names the host to which the client connects."""
    CA = "ca"
    """A trusted authority has signed it."""
    NONE = "none"
    """Nothing, as RocketMQ's clients by default. Whoever controls the network can read and change
    everything.
    """


class _Files(msgspec.Struct, frozen=True, kw_only=True):
    """Files in PEM format. "" stands for none.

    Attributes:
        cert: the certificate, followed by those of intermediate authorities.
        key: its private key.
        key_password: the password of an encrypted private key; never shown.
        ca: the certificates of trusted authorities; "" for those that the system trusts.
    """

    cert: str = ""
    key: str = ""
    key_password: str = ""
    ca: str = ""

    def __rich_repr__(self) -> Any:
        return ((name, value) for name, value in self._shown())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._shown())
        return f"{type(self).__name__}({fields})"

    def _shown(self) -> list[tuple[str, object]]:
        names = (name for name in self.__struct_fields__ if name not in _SECRET)
        return [(name, getattr(self, name)) for name in names]


class ServerTls(_Files, frozen=True, kw_only=True):
    """TLS of a server's connections.

    Without a certificate, the server creates a self-signed one when it first needs one.

    Attributes:
        mode: which connections are accepted.
        client_auth: whether clients are asked for a certificate.
        protocols: what is spoken above TLS, for clients that ask for it (ALPN).
    """

    mode: TlsMode = TlsMode.DISABLED
    client_auth: ClientAuth = ClientAuth.NONE
    protocols: tuple[str, ...] = ()


class ClientTls(_Files, frozen=True, kw_only=True):
    """TLS of a client's connections: all of them use it, and none falls back to clear text.

    Attributes:
        verify: what is checked of a server's certificate.
    """

    verify: Verify = Verify.FULL
