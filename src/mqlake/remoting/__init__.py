"""Connections that speak RocketMQ's remoting protocol: a server, a client, and their limits.

This package does not know what a broker or a name server does. Page: docs/formats/remoting.md.
`RemotingServer` serves a `Route` for each request code; `RemotingClient` sends requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.remoting.client import RemotingClient as RemotingClient
    from mqlake.remoting.connection import Peer as Peer
    from mqlake.remoting.errors import ConnectionFailedError as ConnectionFailedError
    from mqlake.remoting.errors import RequestTimeoutError as RequestTimeoutError
    from mqlake.remoting.limits import Limits as Limits
    from mqlake.remoting.route import Check as Check
    from mqlake.remoting.route import Route as Route
    from mqlake.remoting.server import RemotingServer as RemotingServer
    from mqlake.remoting.tls.options import ClientAuth as ClientAuth
    from mqlake.remoting.tls.options import ClientTls as ClientTls
    from mqlake.remoting.tls.options import ServerTls as ServerTls
    from mqlake.remoting.tls.options import TlsMode as TlsMode
    from mqlake.remoting.tls.options import Verify as Verify
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "RemotingClient": "client",
            "Peer": "connection",
            "ConnectionFailedError": "errors",
            "RequestTimeoutError": "errors",
            "Limits": "limits",
            "Check": "route",
            "Route": "route",
            "RemotingServer": "server",
            "ClientAuth": "tls.options",
            "ClientTls": "tls.options",
            "ServerTls": "tls.options",
            "TlsMode": "tls.options",
            "Verify": "tls.options",
        },
    )
