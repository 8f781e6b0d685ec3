"""A server and a client on one event loop, and raw connections beside them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from mqlake.protocol.command import Command
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.latencies import Latencies
from mqlake.remoting.limits import Limits
from mqlake.remoting.route import Check, Handler, Route
from mqlake.remoting.server import RemotingServer
from mqlake.remoting.stream.frame_reader import FrameReader
from mqlake.remoting.tls.options import ClientTls, ServerTls
from mqlake.store.bounds import networks

PATIENCE = 200.0
"""Seconds to wait for an answer."""


class Served(NamedTuple):
    server: RemotingServer
    client: RemotingClient
    port: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def used(self) -> int:
        """Return the bytes that the server holds for all its connections."""
        return sum(peer.held for peer in self.server.peers)

    async def ask(self, command: Command, seconds: float = PATIENCE) -> Command:
        """Return the answer to a request."""
        return await self.client.request(self.address, command, seconds)


@asynccontextmanager
async def serving(
    handlers: Mapping[int, Handler],
    limits: Limits | None = None,
    client_handlers: Mapping[int, Handler] | None = None,
    checks: Sequence[Check] = (),
    tls: ServerTls | None = None,
    client_tls: ClientTls | None = None,
    latencies: Latencies | None = None,
    proxies: str = "",
) -> AsyncIterator[Served]:
    """Serve while the block runs."""
    routes = [Route(code, handler) for code, handler in handlers.items()]
    server = RemotingServer(routes, limits, checks, tls, latencies, proxies=networks(proxies))
    client = RemotingClient(client_handlers, connect_timeout=PATIENCE, tls=client_tls)
    port = await server.start("127.0.0.1", 0)
    try:
        yield Served(server, client, port)
    finally:
        await client.close()
        await server.stop()


class Raw:
    """A connection whose bytes are the test's affair."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._frames = FrameReader(Limits())
        self._read: list[Command] = []

    @classmethod
    async def open(cls, port: int) -> Raw:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def command(self) -> Command:
        """Return the next command that comes in."""
        while not self._read:
            data = await self.reader.read(1 << 16)
            if not data:
                raise EOFError
            self._read += self._frames.feed(data)
        return self._read.pop(0)

    async def is_closed(self) -> bool:
        """Wait for the end; say whether nothing came before it."""
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


def is_closed(connection: socket.socket) -> bool:
    """Return whether the other side closes a connection on which it sends nothing."""
    connection.settimeout(PATIENCE)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
