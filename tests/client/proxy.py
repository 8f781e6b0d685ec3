"""A proxy before a broker that cuts, stalls and resets connections."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Self

_BLOCK = 1 << 14


class Proxy:
    """Hands bytes on between clients and a server, on the same port of another address.

    Attributes:
        stalled: nothing is handed on while it is set.
        lie: changes what the server says on its way to clients.
        connections: how many there are now.
        cuts: how many were cut.
    """

    def __init__(self, address: str, server: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._server_host, _, server_port = server.rpartition(":")
        self._server_port = int(server_port)
        self.stalled = False
        self.lie: Callable[[bytes], bytes] | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving = 0
        self.cuts = 0

    @property
    def connections(self) -> int:
        return len(self._writers) // 2

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._serve, self._host, self._port)
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._listener.close()
        while self._serving:
            self.cut_all()
            await asyncio.sleep(0.01)

    def cut_all(self) -> None:
        """Reset all connections, in the middle of whatever is under way."""
        for writer in list(self._writers):
            writer.transport.abort()
        self.cuts += 1

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving += 1
        try:
            await self._connect(reader, writer)
        finally:
            self._serving -= 1

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other_reader, other_writer = await asyncio.open_connection(
                self._server_host, self._server_port
            )
        except OSError:
            writer.transport.abort()
            return
        both = writer, other_writer
        self._writers.update(both)
        try:
            await asyncio.gather(
                self._hand_on(reader, other_writer),
                self._hand_on(other_reader, writer, is_answer=True),
            )
        finally:
            for each in both:
                each.transport.abort()
            self._writers.difference_update(both)

    async def _hand_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_answer: bool = False,
    ) -> None:
        try:
            while data := await reader.read(_BLOCK):
                if is_answer and self.lie is not None:
                    data = self.lie(data)
                while self.stalled:  # noqa: ASYNC110 (set by whoever tests)
                    await asyncio.sleep(0.01)
                # Frames arrive in pieces, so that a cut is in the middle of one.
                at = random.randrange(len(data) + 1)
                writer.write(data[:at])
                await writer.drain()
                await asyncio.sleep(0)
                writer.write(data[at:])
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.transport.abort()


async def now_and_then(
    action: Callable[[], None], dice: random.Random, shortest: float, longest: float
) -> None:
    """Do something again and again until this is cancelled."""
    while True:
        await asyncio.sleep(dice.uniform(shortest, longest))
        action()
