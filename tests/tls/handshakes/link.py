"""A connection to a server, both in this process and on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

_QUIET = 6
"""Rounds of the loop in which a server continues with whatever it has received."""

Accept = Callable[[], asyncio.BaseProtocol]


class Loop(asyncio.SelectorEventLoop):
    """Keeps what a server does with each new connection.

    Attributes:
        faults: exceptions that nobody caught.
    """

    def __init__(self) -> None:
        super().__init__()
        self.accept: Accept | None = None
        self.faults: list[str] = []
        self.set_exception_handler(self._note)

    def _note(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.faults.append(f"{context.get('message')}: {context.get('exception')!r}")

    async def create_server(self, factory: Accept, *given: Any, **more: Any) -> asyncio.Server:  # type: ignore[override]
        self.accept = factory
        return await super().create_server(factory, *given, **more)


class Link(asyncio.Transport):
    """The server's end of a connection.

    Attributes:
        sent: what the server has written and nobody has taken.
        is_open: whether neither side has closed it.
    """

    def __init__(self, loop: Loop, address: tuple[str, int]) -> None:
        super().__init__()
        assert loop.accept is not None
        self._loop, self._address = loop, address
        self._waiting = bytearray()
        self._is_paused = False
        self.sent, self.is_open = bytearray(), True
        self._protocol = cast("asyncio.BufferedProtocol", loop.accept())
        self._protocol.connection_made(self)

    async def send(self, data: bytes) -> bytes:
        """Send bytes to the server; return its answer, once it waits for more."""
        self._waiting += data
        quiet = 0
        while quiet < _QUIET and self.is_open:
            before = len(self.sent), len(self._waiting)
            self._hand_over()
            await asyncio.sleep(0)
            quiet = quiet + 1 if (len(self.sent), len(self._waiting)) == before else 0
        answer, self.sent = bytes(self.sent), bytearray()
        return answer

    def _hand_over(self) -> None:
        if self._waiting and not self._is_paused and self.is_open:
            room = self._protocol.get_buffer(-1)
            size = min(len(room), len(self._waiting))
            room[:size] = self._waiting[:size]
            del self._waiting[:size]
            self._protocol.buffer_updated(size)

    async def end(self) -> None:
        """Close the connection from the client's side."""
        self.abort()
        await asyncio.sleep(0)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast("asyncio.BufferedProtocol", protocol)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self.is_open:
            self.sent += data

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.call_soon(self._lost)

    def _lost(self) -> None:
        self._protocol.connection_lost(None)

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: what is written is taken at once."""

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "peername":
            return self._address
        return ("127.0.0.1", 10911) if name == "sockname" else default
