"""An event loop without sockets, whose time passes only while nothing is to be done."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any

LONGEST = 60.0
"""Seconds of real time that a case may take."""

Connect = Callable[[asyncio.BaseProtocol], asyncio.Transport]


class HangError(BaseException):
    """Tasks wait for something that will never happen, or never end."""


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.end = time.perf_counter() + LONGEST

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise HangError("every task waits, and nothing will wake one")
        if timeout > 0:
            self.now += timeout
        elif time.perf_counter() > self.end:
            raise HangError(f"the case takes more than {LONGEST:g} s")
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Makes connections by a function, and skips the time in which nothing happens."""

    def __init__(self, connect: Connect) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        self._connect = connect

    def time(self) -> float:
        return self._virtual.now

    async def create_connection(  # type: ignore[override]
        self, factory: Callable[[], asyncio.BaseProtocol], *_address: object, **_options: object
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        protocol = factory()
        transport = self._connect(protocol)
        protocol.connection_made(transport)
        return transport, protocol
