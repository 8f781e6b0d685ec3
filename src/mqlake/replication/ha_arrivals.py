"""Connections of slaves until it is known whether they use TLS, and until their handshakes are
complete.

The first byte tells: a report of a slave begins with a byte of an offset that no log has if it is
that of a handshake. A master sends nothing before a slave's first report.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

from mqlake.errors import MqlakeError
from mqlake.remoting.tls.detection import HANDSHAKE
from mqlake.remoting.tls.handshakes import Handshakes
from mqlake.remoting.tls.layer import Below, TlsLayer
from mqlake.remoting.tls.options import TlsMode
from mqlake.remoting.tls.server import ServerContexts

SECONDS: Final = 30.0
"""Seconds within which a handshake must be complete, as on the port of clients
(`Limits.handshake`). The first byte may take no longer, either.
"""
_ROOM: Final = 1 << 15
_BUFFERED: Final = 64 << 10
"""Bytes of reports that a connection buffers."""

Opened = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


class HaArrivals:
    """Opens the connections of slaves as streams, over TLS or in clear text.

    Args:
        contexts: which of both are accepted.
        patience: seconds until the first byte, at most `SECONDS`.
        refusal: returns why a new connection is refused, or None.
        opened: called with the streams of each.
        refused: called with the address of a connection that comes to nothing, and the reason.

    Attributes:
        waiting: connections that are not open yet, the oldest first.
    """

    def __init__(
        self,
        contexts: ServerContexts,
        patience: float,
        refusal: Callable[[asyncio.Transport], str | None],
        opened: Opened,
        refused: Callable[[str, str], object],
    ) -> None:
        self.contexts, self.refusal = contexts, refusal
        self.opened, self.refused = opened, refused
        self.patience = min(patience, SECONDS)
        self.waiting: list[Arrival] = []
        self.loop = asyncio.get_running_loop()
        room = memoryview(bytearray(_ROOM))
        self.below = Below(self.loop, lambda: room, Handshakes(self.loop), SECONDS)

    def accept(self) -> Arrival:
        """Return the protocol of a new connection."""
        return Arrival(self)

    def close_all(self) -> None:
        """Close the connections that are not open yet."""
        for arrival in list(self.waiting):
            arrival.close()

    def close_oldest(self, reason: str) -> bool:
        """Close the oldest of them; return whether there was one."""
        if not self.waiting:
            return False
        self.waiting[0].fail(reason)
        return True


class Arrival(asyncio.BufferedProtocol):
    """The protocol of one connection until it is open."""

    def __init__(self, arrivals: HaArrivals) -> None:
        self._arrivals = arrivals
        self._raw: asyncio.Transport
        self._layer: TlsLayer | None = None
        self._address = "unknown"
        # The loop itself does not keep tasks alive.
        self._securing: asyncio.Task[None] | None = None

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first byte, unless all connections are in clear text."""
        self._raw = cast("asyncio.Transport", transport)
        self._address = address_of(self._raw)
        arrivals = self._arrivals
        self._deadline = arrivals.loop.call_later(arrivals.patience, self._too_slow)
        if (refusal := arrivals.refusal(self._raw)) is not None:
            self.fail(refusal)
        elif arrivals.contexts.mode is TlsMode.DISABLED:
            self._open(self._raw, _PassedStream(arrivals.below))
        else:
            arrivals.waiting.append(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 (its name is asyncio's)
        """Return the buffer that all connections share."""
        return self._arrivals.below.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Decide by the first byte."""
        data = bytes(self._arrivals.below.room()[:nbytes])
        if data[0] == HANDSHAKE:
            self._raw.pause_reading()
            self._securing = self._arrivals.loop.create_task(self._secure(data))
        elif self._arrivals.contexts.mode is TlsMode.ENFORCING:
            self.fail("it does not use TLS, and tls.server.mode is enforcing")
        else:
            stream = _PassedStream(self._arrivals.below)
            self._open(self._raw, stream)
            stream.receive(data)

    def pause_writing(self) -> None:
        """Do nothing: nothing is written yet."""

    def resume_writing(self) -> None:
        """Do nothing, as `pause_writing`."""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Count the connection no longer."""
        self._leave()

    # TLS

    async def _secure(self, data: bytes) -> None:
        arrivals = self._arrivals
        try:
            context = await arrivals.contexts.get()
            if self._raw.is_closing():
                return
            stream = _PassedStream(arrivals.below)
            self._layer = layer = TlsLayer(
                self._raw, stream, arrivals.below, self.fail, context, is_server=True
            )
            self._deadline.cancel()  # The handshake has its own.
            layer.start(data)
            await layer.ready
        except (MqlakeError, OSError) as error:
            self.fail(str(error))
        else:
            self._open(layer, stream)

    def _open(self, transport: asyncio.Transport, stream: _PassedStream) -> None:
        self._leave()
        if transport is self._raw:
            transport.set_protocol(stream)
        self._arrivals.opened(*stream.open(transport))

    # The end

    def _too_slow(self) -> None:
        self.fail(f"it has sent nothing for {self._arrivals.patience:g} s")

    def fail(self, reason: str) -> None:
        """Close the connection, for a reason that is logged."""
        if not self._raw.is_closing():
            self._arrivals.refused(self._address, reason)
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._leave()
        (self._layer or self._raw).abort()

    def _leave(self) -> None:
        self._deadline.cancel()
        if self in self._arrivals.waiting:
            self._arrivals.waiting.remove(self)


class _PassedStream(asyncio.BufferedProtocol):
    """Passes what arrives to a stream; a TLS layer and a socket both call it."""

    def __init__(self, below: Below) -> None:
        self._below = below
        self._reader = asyncio.StreamReader(_BUFFERED, below.loop)
        self._protocol = asyncio.StreamReaderProtocol(self._reader, loop=below.loop)

    def open(
        self, transport: asyncio.Transport
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return the streams over a transport."""
        self._protocol.connection_made(transport)
        writer = asyncio.StreamWriter(transport, self._protocol, self._reader, self._below.loop)
        return self._reader, writer

    def receive(self, data: bytes) -> None:
        """Take what has arrived."""
        self._protocol.data_received(data)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 (its name is asyncio's)
        """Return the buffer that all connections share."""
        return self._below.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Take what has arrived."""
        self.receive(bytes(self._below.room()[:nbytes]))

    def eof_received(self) -> None:
        """Let the transport close: nothing is sent to a slave that reports nothing more."""
        self._protocol.eof_received()

    def pause_writing(self) -> None:
        """Let `drain` wait."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Let `drain` return."""
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the streams."""
        self._protocol.connection_lost(exc)


def address_of(transport: asyncio.BaseTransport) -> str:
    """Return the "host:port" of the other side, and have small reports sent at once."""
    connected: socket.socket | None = transport.get_extra_info("socket")
    if connected is not None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer = transport.get_extra_info("peername")
    return f"{peer[0]}:{peer[1]}" if peer else "unknown"
