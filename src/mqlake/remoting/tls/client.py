"""The context of a client, which follows its files."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

from mqlake.remoting.tls.contexts import client_context
from mqlake.remoting.tls.layer import TlsLayer
from mqlake.remoting.tls.options import ClientTls
from mqlake.remoting.tls.watched import WatchedContext

if TYPE_CHECKING:
    from mqlake.remoting.connection import Peer
    from mqlake.remoting.shared import Shared


class ClientContexts:
    """Creates the context of a client with its first connection, and again when files change."""

    def __init__(self, options: ClientTls) -> None:
        self._watched = WatchedContext(options, lambda: client_context(options))
        self._turn = asyncio.Lock()

    async def get(self) -> ssl.SSLContext:
        """Return the context for a new connection.

        Raises:
            MqlakeError: a file cannot be used.
        """
        async with self._turn:
            return await asyncio.to_thread(self._newest)

    def _newest(self) -> ssl.SSLContext:
        context = self._watched.load()
        self._watched.refresh()
        return self._watched.now or context


async def secure(
    peer: Peer, raw: asyncio.Transport, shared: Shared[Peer], context: ssl.SSLContext, host: str
) -> None:
    """Use TLS on a connection on which nothing was sent yet.

    Args:
        host: the name or address to which the client has connected.

    Raises:
        ConnectionError: the other side does not use TLS, or is not the one it should be.
        ValueError: the host is no name that a certificate may have.
    """
    layer = TlsLayer(raw, peer, shared.tls, peer.evict, context, is_server=False, host=host)
    peer.secure(layer)
    await shake_hands(layer)


async def shake_hands(layer: TlsLayer) -> None:
    """Return once the handshake of a client's connection is complete; close it if it fails.

    Raises:
        ConnectionError: the other side does not use TLS, or is not the one it should be.
    """
    layer.start()
    try:
        await layer.ready
    except BaseException:  # Also if the time is over.
        layer.abort()
        raise
