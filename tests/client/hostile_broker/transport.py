"""A connection to a broker that is an object of the same process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from mqlake.protocol.command import Command
from mqlake.remoting.connection import Peer
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader, Frames

Serve = Callable[["Link", Command], None]


class Link(asyncio.Transport):
    """A client's connection, as its transport; `serve` gets each request.

    Attributes:
        is_open: whether neither side has closed it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, peer: Peer, serve: Serve) -> None:
        super().__init__()
        self._loop, self._peer, self._serve = loop, peer, serve
        self._reader = FrameReader(Limits())
        self._arriving: deque[bytes] = deque()
        self._is_paused = self._is_handing_over = False
        self.is_open = True

    def answer(self, data: bytes) -> None:
        """Send bytes to the client."""
        if self.is_open and data:
            self._arriving.append(data)
            self._hand_over_soon()

    def _hand_over_soon(self) -> None:
        if not self._is_handing_over and not self._is_paused and self._arriving:
            self._is_handing_over = True
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._is_handing_over = False
        if self._is_paused or not self.is_open:
            return
        data = self._arriving.popleft()
        room = self._peer.get_buffer(len(data))
        size = min(len(room), len(data))
        room[:size] = data[:size]
        if size < len(data):
            self._arriving.appendleft(data[size:])
        self._peer.buffer_updated(size)
        self._hand_over_soon()

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self.is_open:
            self._loop.call_soon(self._take, bytes(data))

    def _take(self, data: bytes) -> None:
        for command in self._reader.feed(data):
            assert not isinstance(command, Frames)
            self._serve(self, command)

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.call_soon(self._peer.connection_lost, None)

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._hand_over_soon()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: what is written is taken at once."""

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 10911) if name in ("peername", "sockname") else default
