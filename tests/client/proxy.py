"""A proxy before a server that cuts, stalls, slows, resets and half-opens connections."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from tests.accepted import Accepted

_BLOCK = 1 << 14
_SLOW_BLOCK = 512


class _Link:
    """One connection of a client, and the proxy's own to the server.

    Attributes:
        writers: of the client's side, and of the server's side.
        is_dead: the server's side is gone, and the client is not told: what it sends is lost.
        is_to_be_cut: the next bytes arrive in part, and then both sides are reset.
    """

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.writers = [client]
        self.is_dead = self.is_to_be_cut = False

    def abort(self) -> None:
        for writer in self.writers:
            writer.transport.abort()


class Proxy:
    """Hands bytes on between clients and a server, on the same port of another address.

    Attributes:
        stalled: nothing is handed on while it is set.
        swallows: new connections are accepted and lead nowhere while it is set.
        pause: seconds before each piece of 512 bytes; 0 for no limit.
        lie: changes what the server says on its way to clients.
        connections: how many there are now.
        cuts: how many were cut.
    """

    def __init__(self, address: str, server: str, dice: random.Random | None = None) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._server_host, _, server_port = server.rpartition(":")
        self._server_port = int(server_port)
        self._dice = dice or random.Random()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.swallows = False
        self.pause = 0.0
        self.lie: Callable[[bytes], bytes] | None = None
        self._links: set[_Link] = set()
        self._accepted = Accepted(self._serve)
        self._listener: asyncio.Server | None = None
        self.cuts = 0

    @property
    def stalled(self) -> bool:
        return not self._flowing.is_set()

    @stalled.setter
    def stalled(self, is_stalled: bool) -> None:
        (self._flowing.clear if is_stalled else self._flowing.set)()

    @property
    def connections(self) -> int:
        return len(self._links)

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *failure: object) -> None:
        self.refuse()
        await self._accepted.end()

    async def listen(self) -> None:
        """Accept connections, if it does not yet."""
        if self._listener is None:
            self._listener = await asyncio.start_server(self._accepted, self._host, self._port)

    def refuse(self) -> None:
        """Accept no connections until `listen`; those that there are stay."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def cut_all(self) -> None:
        """Reset all connections, in the middle of whatever is under way."""
        for link in list(self._links):
            link.abort()
        self.cuts += 1

    def cut_in_frames(self) -> None:
        """Reset each connection once a part of the next bytes has been handed on."""
        for link in self._links:
            link.is_to_be_cut = True
        self.cuts += 1

    def half_open_all(self) -> None:
        """Have the server lose all connections, and the clients not notice."""
        for link in self._links:
            link.is_dead = True
            for writer in link.writers[1:]:
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(writer)
        link.is_dead = self.swallows
        self._links.add(link)
        try:
            if link.is_dead:
                await self._swallow(reader)
            else:
                await self._connect(link, reader)
        finally:
            link.abort()
            self._links.discard(link)

    async def _connect(self, link: _Link, reader: asyncio.StreamReader) -> None:
        try:
            other_reader, other_writer = await asyncio.open_connection(
                self._server_host, self._server_port
            )
        except OSError:
            return
        link.writers.append(other_writer)
        client = link.writers[0]
        await asyncio.gather(
            self._hand_on(link, reader, other_writer),
            self._hand_on(link, other_reader, client, is_answer=True),
        )

    async def _hand_on(
        self,
        link: _Link,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_answer: bool = False,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(_SLOW_BLOCK if self.pause else _BLOCK):
                if link.is_dead:
                    break
                if is_answer and self.lie is not None:
                    data = self.lie(data)
                await self._flowing.wait()
                await asyncio.sleep(self.pause)
                if not await self._write(link, writer, data):
                    return
        if not link.is_dead:
            writer.transport.abort()
        elif not is_answer:
            await self._swallow(reader)

    async def _write(self, link: _Link, writer: asyncio.StreamWriter, data: bytes) -> bool:
        """Hand on bytes in two pieces; return whether more may follow."""
        at = self._dice.randrange(len(data) + 1)
        writer.write(data[:at])
        await writer.drain()
        await asyncio.sleep(0)
        if link.is_to_be_cut:
            link.abort()
            return False
        writer.write(data[at:])
        await writer.drain()
        return True

    async def _swallow(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while await reader.read(_BLOCK):
                pass


async def now_and_then(
    action: Callable[[], None], dice: random.Random, shortest: float, longest: float
) -> None:
    """Do something again and again until this is cancelled."""
    while True:
        await asyncio.sleep(dice.uniform(shortest, longest))
        action()
