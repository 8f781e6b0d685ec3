"""A client's connection to a server in the same event loop, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from mqlake.protocol.command import RESPONSE, Command
from mqlake.protocol.frames import encode
from mqlake.remoting.limits import Limits
from mqlake.remoting.server import RemotingServer
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.budget.meter import Meter

_PATIENCE = 60.0
_LONGEST_HEADER = 16 << 20
"""As RocketMQ's clients read: only the frame is limited."""


class _Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self, number: int) -> None:
        super().__init__({"peername": (f"10.0.{number >> 8 & 255}.{number & 255}", 1024)})
        self.written: list[bytes] = []
        self.wake: asyncio.Event | None = None
        self.is_paused = False
        self.protocol: Any = None

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))
        if self.wake is not None:
            self.wake.set()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def close(self) -> None:
        if self.wake is not None:
            self.wake.set()

    def abort(self) -> None:
        self.close()


class Connection:
    """A connection on which one request after another is served, and measured."""

    _count = 0

    def __init__(self, server: RemotingServer, meter: Meter) -> None:
        Connection._count += 1
        self._meter, self._transport = meter, _Transport(Connection._count)
        known = server.peers
        self._transport.protocol = server._accept()  # The detection of TLS, until bytes arrive.
        self._transport.protocol.connection_made(self._transport)
        (self.peer,) = server.peers - known
        self._frames = FrameReader(Limits(header=_LONGEST_HEADER))
        self._opaque = 0

    async def ask(self, command: Command) -> Command:
        """Return the answer to a request."""
        (answer,) = await self.ask_all((command,))
        return answer

    async def ask_all(self, commands: Iterable[Command]) -> list[Command]:
        """Return the answers to requests that arrive together, in the order of their arrival."""
        count = await self.send(commands)
        return await self.answers(count)

    async def send(self, commands: Iterable[Command]) -> int:
        """Let requests arrive; return how many."""
        frames: list[bytes] = []
        for command in commands:
            self._opaque += 1
            command.opaque = self._opaque
            frames.append(encode(command))
        data = memoryview(b"".join(frames))
        while data:
            while self._transport.is_paused:
                await asyncio.sleep(0)
                self._meter.mute()
            protocol = self._transport.protocol
            room = protocol.get_buffer(-1)
            part = data[: len(room)]
            room[: len(part)] = part
            self._meter.begin()
            protocol.buffer_updated(len(part))
            self._meter.end(lambda: "the handler of the request")
            data = data[len(part) :]
        return len(frames)

    async def answers(self, count: int) -> list[Command]:
        """Wait for so many answers."""
        found: list[Command] = []
        peer = self.peer
        wake = self._transport.wake = asyncio.Event()
        while True:
            self._meter.mute()
            wake.clear()
            written, self._transport.written = self._transport.written, []
            for data in written:
                for at in range(0, len(data), 1 << 20):
                    frames = self._frames.feed(data[at : at + (1 << 20)])
                    found += (frame for frame in frames if frame.flag & RESPONSE)
            if len(found) >= count:
                return found
            assert not peer.is_closed, "the server has closed the connection"
            async with asyncio.timeout(_PATIENCE):
                await wake.wait()

    def close(self) -> None:
        """Lose the connection."""
        self._transport.protocol.connection_lost(None)
