"""The first byte of a connection tells whether it uses TLS.

Upstream: `NettyRemotingServer.TlsModeHandler`.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from mqlake.errors import MqlakeError
from mqlake.remoting.tls.accepted import Accepted, Accepting
from mqlake.remoting.tls.layer import TlsLayer
from mqlake.remoting.tls.options import TlsMode

if TYPE_CHECKING:
    from mqlake.remoting.tls.server import ServerContexts

A = TypeVar("A", bound=Accepted)

HANDSHAKE: Final = 0x16
"""The first byte of a TLS connection; of a frame it would be a length beyond the limit."""


class TlsDetection(asyncio.BufferedProtocol, Generic[A]):
    """The protocol of a connection until its first bytes arrive."""

    def __init__(self, peer: A, shared: Accepting[A], contexts: ServerContexts) -> None:
        self._peer, self._shared, self._contexts = peer, shared, contexts
        self._raw: asyncio.Transport | None = None
        # The loop itself does not keep tasks alive.
        self._securing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast("asyncio.Transport", transport)
        self._peer.connection_made(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._peer.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        assert self._raw is not None
        if self._peer.is_closed:
            return
        if self._shared.buffer[0] == HANDSHAKE:
            self._raw.pause_reading()
            data = bytes(self._shared.buffer[:nbytes])
            self._securing = asyncio.ensure_future(self._secure(data))
        elif self._contexts.mode is TlsMode.ENFORCING:
            self._peer.evict("it does not use TLS, and tls.server.mode is enforcing")
        else:
            # The bytes are where the peer reads them.
            self._raw.set_protocol(cast("asyncio.BufferedProtocol", self._peer))
            self._peer.buffer_updated(nbytes)

    async def _secure(self, data: bytes) -> None:
        try:
            context = await self._contexts.get()
        except MqlakeError as error:
            self._peer.evict(str(error))
            return
        if not self._peer.is_closed:
            self._begin(context, data)

    def _begin(self, context: ssl.SSLContext, data: bytes) -> None:
        assert self._raw is not None
        below, upper = self._shared.tls, cast("asyncio.BufferedProtocol", self._peer)
        layer = TlsLayer(self._raw, upper, below, self._peer.evict, context, is_server=True)
        self._peer.secure(layer)
        layer.start(data)

    def pause_writing(self) -> None:
        self._peer.pause_writing()

    def resume_writing(self) -> None:
        self._peer.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._peer.connection_lost(exc)
