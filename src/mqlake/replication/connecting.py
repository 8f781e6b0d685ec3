"""A slave's connection to its master: open it, and read with a timeout."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import cast

from mqlake.errors import MqlakeError
from mqlake.remoting.tls.client import ClientContexts, shake_hands
from mqlake.remoting.tls.handshakes import Handshakes
from mqlake.remoting.tls.layer import Below, TlsLayer

_CONNECT = 5.0
"""Seconds that a connection may take, with its TLS handshake."""
_READ = 1 << 20
"""Most bytes that are read at once."""
_UNREAD = 64 << 10
"""Bytes of reports that a master leaves unread at most."""
_ENCRYPTED = 1 << 15
"""Encrypted bytes that are read at once."""


class MasterConnection(asyncio.BufferedProtocol):
    """A connection to a master. Two buffers take turns: one is filled while the other is read.

    `asyncio`'s streams copy all that arrives twice, and ask for memory each time.
    """

    def __init__(self) -> None:
        self._buffers = memoryview(bytearray(_READ)), memoryview(bytearray(_READ))
        self._filled, self._is_paused, self._is_over = 0, False, False
        self._failure: Exception | None = None
        self._transport: asyncio.Transport
        self._arrived = asyncio.Event()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._transport = cast("asyncio.Transport", transport)
        connected: socket.socket = transport.get_extra_info("socket")
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let whoever reads know."""
        self._is_over, self._failure = True, self._failure or exc
        self._arrived.set()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 (its name is asyncio's)
        """Return where to put what arrives."""
        return self._buffers[0][self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take note of what has arrived."""
        self._filled += nbytes
        if self._filled == _READ:
            self._is_paused = True
            self._transport.pause_reading()
        self._arrived.set()

    def eof_received(self) -> None:
        """Let whoever reads know."""
        self._is_over = True
        self._arrived.set()

    async def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Use TLS on this connection, on which nothing was sent yet.

        Raises:
            OSError: the master does not use TLS, or is not the one it should be.
            MqlakeError: the host is no name that a certificate may have.
        """
        loop, room = asyncio.get_running_loop(), memoryview(bytearray(_ENCRYPTED))
        below = Below(loop, lambda: room, Handshakes(loop), _CONNECT)
        try:
            layer = TlsLayer(
                self._transport, self, below, self._broken, context, is_server=False, host=host
            )
        except ValueError as error:
            raise MqlakeError(f"{host}: {error}") from None
        self._transport = layer
        await shake_hands(layer)

    def _broken(self, reason: str) -> None:
        self._is_over, self._failure = True, ConnectionError(reason)
        self._arrived.set()
        self._transport.abort()

    # What a slave calls

    async def read(self, seconds: float) -> memoryview:
        """Return what comes next. It is valid until the next call.

        Raises:
            MqlakeError: nothing does within so many seconds, or the connection is closed.
            OSError: the connection is lost.
        """
        if not self._filled and not self._is_over:
            self._arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._arrived.wait()
        if self._filled:
            data = self._buffers[0][: self._filled]
            self._buffers, self._filled = self._buffers[::-1], 0
            if self._is_paused and not self._is_over:
                self._is_paused = False
                self._transport.resume_reading()
            return data
        if self._failure is not None:
            raise self._failure
        if self._is_over:
            raise MqlakeError("the master closed the connection")
        raise MqlakeError(f"nothing came for {seconds:g} s")

    def write(self, data: bytes) -> None:
        """Send something; nothing if the master reads nothing."""
        if self._transport.get_write_buffer_size() < _UNREAD:
            self._transport.write(data)

    def close(self) -> None:
        """End the connection at once."""
        self._transport.abort()


async def connect(address: str, contexts: ClientContexts | None = None) -> MasterConnection:
    """Return a connection to a "host:port".

    Args:
        contexts: how it uses TLS; None for clear text.

    Raises:
        OSError: nobody listens there, or opening the connection takes too long; with TLS, also if
            the master does not use it, or is not the one it should be.
        MqlakeError: a file for TLS cannot be used.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    context = await contexts.get() if contexts is not None else None
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_CONNECT):
        _, connection = await loop.create_connection(MasterConnection, host, int(port))
        if context is not None:
            try:
                await connection.secure(context, host)
            except BaseException:
                connection.close()
                raise
    return connection
