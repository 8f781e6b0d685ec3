"""A connection on which bytes are sent, and frames received."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import ClassVar, Self

from mqlake.protocol.command import Command, Serialization
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.broker.running import PATIENCE, Running
from tests.broker.send.random_sends import KEY, made
from tests.protocol.messages import SEND_FIELDS

FIELDS = SEND_FIELDS | {"i": KEY, "e": "0"}
KINDS = tuple(Serialization)


def usual(number: int, kind: int = 0, **fields: str) -> bytes:
    """Return a usual send whose body is its opaque."""
    return made(kind, FIELDS | fields, b"%d" % number, number)


class RawClient:
    """One connection to a broker."""

    _open: ClassVar[list[RawClient]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._frames = FrameReader(Limits())
        self._found: list[Command] = []

    @classmethod
    async def connect(cls, broker: Running) -> Self:
        host, _, port = broker.address.rpartition(":")
        made = cls(*await asyncio.open_connection(host, int(port)))
        cls._open.append(made)
        return made

    @classmethod
    async def close_all(cls) -> None:
        """Close all connections that were made."""
        for client in cls._open:
            client.close()
            with suppress(OSError):
                await client.writer.wait_closed()
        cls._open.clear()

    def write(self, data: bytes) -> None:
        """Send data, without waiting."""
        self.writer.write(data)

    async def answers(self, count: int) -> list[Command]:
        """Return the next answers, so many of them."""
        async with asyncio.timeout(PATIENCE):
            while len(self._found) < count:
                data = await self._reader.read(1 << 18)
                assert data, "the connection was closed"
                self._found += [one for one in self._frames.feed(data) if isinstance(one, Command)]
        found, self._found = self._found[:count], self._found[count:]
        return found

    async def ask(self, *frames: bytes) -> list[Command]:
        """Return the answers to frames that are sent together."""
        self.writer.write(b"".join(frames))
        return await self.answers(len(frames))

    async def rest(self) -> bytes:
        """Return what comes until the broker closes the connection."""
        async with asyncio.timeout(PATIENCE):
            return await self._reader.read()

    def close(self) -> None:
        self.writer.close()
