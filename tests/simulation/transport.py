"""Simulated connections: bytes arrive late, in pieces, in their order, or not at all."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.process import Process

if TYPE_CHECKING:
    from tests.simulation.network import Network

Address = tuple[str, int]

_WINDOWS = (0, 0, 0, 1 << 16, 600)
"""Bytes that may be on their way in one direction before a write has to wait; 0 for any number."""
_SPLIT = 0.08
"""How often what is written at once arrives in pieces."""


class Connection:
    """Two ends, and the network between them."""

    def __init__(
        self, network: Network, source: Process, client: Address, target: Process, server: Address
    ) -> None:
        self.network = network
        window = network.dice.choice(_WINDOWS)
        self.client = End(self, source, client, server, window)
        self.server = End(self, target, server, client, window)
        self.client.other, self.server.other = self.server, self.client

    def cut(self, *, in_frames: bool = False) -> None:
        """Reset both ends; what is on its way is lost.

        Args:
            in_frames: a part of what is on its way still arrives, cut anywhere.
        """
        for end in (self.client, self.server):
            end.drop_incoming(keeps_some=in_frames)
            end.at(self.network.loop.time(), end.reset)

    def lose(self, end: End, *, is_silent: bool) -> None:
        """Reset one end without a word to the other one.

        Args:
            is_silent: what the other end sends is not answered either. Otherwise it is reset once
                it sends something.
        """
        end.is_silent = is_silent
        end.drop_incoming()
        end.at(self.network.loop.time(), end.reset)


class _Socket:
    """Stands for the socket of a connection, which has no options here."""

    def setsockopt(self, *_: int) -> None:
        pass

    def fileno(self) -> int:
        return -1


class End(asyncio.Transport):
    """One end of a connection.

    Attributes:
        other: the other end.
        is_lost: whether it is gone; what arrives for it is answered with a reset.
        is_silent: whether what arrives after its loss is not even answered.
    """

    other: End

    def __init__(
        self, connection: Connection, process: Process, own: Address, peer: Address, window: int
    ) -> None:
        super().__init__({"peername": peer, "sockname": own, "socket": _Socket()})
        self.connection, self.process, self._window = connection, process, window
        self._network: Network = connection.network
        self._loop = self._network.loop
        self._protocol: Any = None
        self._is_reading = self._is_read_scheduled = False
        self._unsent = bytearray()
        self._unread = 0
        self._high = 1 << 16
        self._is_choked = self._is_closing = False
        self._last_arrival, self._epoch = 0.0, 0
        self._on_way: deque[bytes] = deque()
        self._incoming: deque[bytes] = deque()
        self._is_at_end = False
        self.is_lost = self.is_silent = False

    def at(self, when: float, function: Callable[..., object], *args: object) -> None:
        """Call a function in this end's process."""
        self._loop.call_at(when, function, *args, context=self.process.context)

    # Life

    def destroy(self) -> None:
        """Count as closed: the run is over."""
        self._is_closing = True

    def start(self, protocol: asyncio.BaseProtocol) -> None:
        """Have a protocol served; to be called in the end's process."""
        self._protocol, self._is_reading = protocol, True
        protocol.connection_made(self)
        self._read_soon()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def vanish(self, *, tells: bool) -> None:
        """Go without the protocol, whose process is dead; `tells` the other end."""
        was_lost, self.is_lost, self._is_closing = self.is_lost, True, True
        if not was_lost and tells:
            self.other.at(self.arrival(), self.other.reset)
        self._forget()

    def reset(self) -> None:
        """Lose the connection."""
        self._lose(ConnectionResetError(104, "Connection reset by peer"))

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing, self._is_reading = True, False
        if not self._unsent:
            self._end()

    def abort(self) -> None:
        if self.is_lost:
            return
        self._is_closing, self._is_reading = True, False
        self._unsent.clear()
        if not self.process.is_doomed:
            self.other.at(self.arrival(), self.other.reset)
        self.at(self._loop.time(), self._lose, None)

    def is_closing(self) -> bool:
        return self._is_closing

    def _end(self) -> None:
        """Tell the other end that no more comes, and go."""
        if not self.process.is_doomed:
            self.other.at(self.arrival(), self.other.take_end)
        self.at(self._loop.time(), self._lose, None)

    def _lose(self, error: Exception | None) -> None:
        if self.is_lost:
            return
        self.is_lost = self._is_closing = True
        self._unsent.clear()
        self._incoming.clear()
        protocol, self._protocol = self._protocol, None
        self._forget()
        if protocol is not None:
            protocol.connection_lost(error)

    def _forget(self) -> None:
        if self.other.is_lost:
            self._network.forget(self.connection)

    # Out

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or self.process.is_doomed:
            return
        self._network.on_write(self.connection)
        if self._is_closing:
            return
        self._unsent += data
        self._send()
        if len(self._unsent) > self._high and not self._is_choked:
            self._is_choked = True
            self._protocol.pause_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 1 << 16 if high is None else high

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def arrival(self) -> float:
        """Return when something sent now arrives: not before what was sent earlier."""
        source, target = self.process.machine, self.other.process.machine
        arrival = self._loop.time() + self._network.delay(source, target)
        self._last_arrival = max(arrival, self._last_arrival)
        return self._last_arrival

    def _send(self) -> None:
        while self._unsent:
            size = len(self._unsent)
            if self._window:
                size = min(size, self._window - self._unread)
            if size <= 0:
                return
            if size > 1 and self._network.dice.random() < _SPLIT:
                size = self._network.dice.randrange(1, size)
            piece = bytes(self._unsent[:size])
            del self._unsent[:size]
            self._unread += size
            self.other.expect(self.arrival(), piece)

    def _was_read(self, size: int) -> None:
        """Take note that the other end has read so many bytes."""
        if self.is_lost:
            return
        self._unread -= size
        self._send()
        if self._unsent:
            return
        if self._is_choked:
            self._is_choked = False
            self._protocol.resume_writing()
        if self._is_closing:
            self._end()

    # In

    def expect(self, when: float, piece: bytes) -> None:
        """Have a piece arrive at a time."""
        self._on_way.append(piece)
        # A dead process receives nothing; its machine answers for it.
        context = self.process.context if self.process.is_alive else self._loop.own_context
        self._loop.call_at(when, self._receive, self._epoch, context=context)

    def take_end(self) -> None:
        """Take note that no more comes."""
        self._is_at_end = True
        self._read_soon()

    def drop_incoming(self, *, keeps_some: bool = False) -> None:
        """Lose what is on its way to this end, or all but a first part of it."""
        if keeps_some and self._on_way and not self.is_lost:
            piece, dice = self._on_way[0], self._network.dice
            self._incoming.append(piece[: dice.randrange(len(piece) + 1)])
            self._read_soon()
        self._on_way.clear()
        self._epoch += 1

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        if not self._is_closing:
            self._is_reading = True
            self._read_soon()

    def is_reading(self) -> bool:
        return self._is_reading

    def _receive(self, epoch: int) -> None:
        if epoch != self._epoch:
            return
        piece = self._on_way.popleft()
        if self.is_lost:
            self._answer_with_reset()
            return
        self._loop.note(piece)
        self._incoming.append(piece)
        if self._is_reading and not self._is_read_scheduled:
            self._read()

    def _answer_with_reset(self) -> None:
        if not self.is_silent and self._network.machine(self.process.machine).is_on:
            self.other.at(self.arrival(), self.other.reset)

    def _read_soon(self) -> None:
        if (self._incoming or self._is_at_end) and not self._is_read_scheduled:
            self._is_read_scheduled = True
            self.at(self._loop.time(), self._read_later)

    def _read_later(self) -> None:
        self._is_read_scheduled = False
        if self._is_reading and not self.is_lost:
            self._read()

    def _read(self) -> None:
        """Hand over what has arrived, as much as the protocol's buffer takes."""
        if not self._incoming:
            if self._is_at_end and not self._protocol.eof_received():
                self.close()
            return
        data = b"".join(self._incoming)
        self._incoming.clear()
        if not isinstance(self._protocol, asyncio.BufferedProtocol):
            self._note_read(len(data))
            self._protocol.data_received(data)
            self._read_soon()
            return
        buffer = self._protocol.get_buffer(-1)
        size = min(len(data), len(buffer))
        buffer[:size] = data[:size]
        if size < len(data):
            self._incoming.append(data[size:])
        self._note_read(size)
        self._protocol.buffer_updated(size)
        self._read_soon()

    def _note_read(self, size: int) -> None:
        if self._window:
            self.other.at(self._loop.time(), self.other._was_read, size)
