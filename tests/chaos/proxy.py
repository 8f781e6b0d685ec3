"""A proxy between clients and a server that cuts, stalls and garbles."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum
from typing import Self

from mqlake.remoting.client import split_address
from tests.accepted import Accepted

CHUNK = 1 << 14
LONGEST_STALL = 0.2
"""Seconds."""


class Way(Enum):
    """What may become of some bytes on their way."""

    CUT = "cut"
    """A part of them arrives, then both sides are reset."""
    STALL = "stall"
    """They come late, and so does what follows them."""
    GARBLE = "garble"
    """Some are others, missing, or there twice."""


class Proxy:
    """Listens on a free port while the block runs, and passes on to `target`, "host:port".

    Attributes:
        address: where it listens.
        seen: how often what happened.
    """

    address: str

    def __init__(self, target: str, ways: Iterable[Way], seed: int, share: float = 0.02) -> None:
        self._target, self._ways, self._share = target, tuple(ways), share
        self._dice = random.Random(seed)
        self._accepted = Accepted(self._pass_on)
        self.seen: Counter[Way] = Counter()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._server.close()
        await self._accepted.end()
        await self._server.wait_closed()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_server, to_server = await asyncio.open_connection(*split_address(self._target))
        except OSError:
            return
        pumps = (self._pump(reader, to_server), self._pump(from_server, writer))
        tasks = [asyncio.ensure_future(pump) for pump in pumps]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_server.transport.abort()
            for each in tasks:
                each.cancel()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                way = self._choose()
                if way is Way.CUT:
                    writer.write(data[: self._dice.randrange(len(data))])
                    return
                if way is Way.STALL:
                    await asyncio.sleep(self._dice.random() * LONGEST_STALL)
                writer.write(self._garbled(data) if way is Way.GARBLE else data)
                await writer.drain()

    def _choose(self) -> Way | None:
        if self._dice.random() >= self._share:
            return None
        way = self._dice.choice(self._ways)
        self.seen[way] += 1
        return way

    def _garbled(self, data: bytes) -> bytes:
        at = self._dice.randrange(len(data))
        length = self._dice.choice((1, 1, 2, 8, 100))
        replaced = (b"", self._dice.randbytes(length), data[at : at + length] * 2)
        return data[:at] + self._dice.choice(replaced) + data[at + length :]
