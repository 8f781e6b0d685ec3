"""A client that asks for much, and reads the answers later."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from typing import Self

from mqlake.protocol.command import Command
from mqlake.protocol.frames import encode
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.broker.running import PATIENCE, Running

_KEPT = 1 << 16
"""Bytes that the system and the stream each keep of what is not read."""


class SlowReader:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._frames = FrameReader(Limits())

    @classmethod
    async def connect(cls, broker: Running) -> Self:
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _KEPT)
        one.setblocking(False)
        host, _, port = broker.address.rpartition(":")
        await asyncio.get_running_loop().sock_connect(one, (host, int(port)))
        return cls(*await asyncio.open_connection(sock=one, limit=_KEPT))

    async def ask(self, requests: Iterable[Command]) -> None:
        """Send requests; the broker may see them later."""
        for number, asked in enumerate(requests, 1):
            asked.opaque = number
            self._writer.write(encode(asked))
        await self._writer.drain()

    async def read(self, count: int) -> list[Command]:
        """Read so many answers."""
        found: list[Command] = []
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                data = await self._reader.read(1 << 18)
                assert data, "the connection was closed"
                found += self._frames.feed(data)
        return found

    def close(self) -> None:
        self._writer.close()
