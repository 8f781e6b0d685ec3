"""The requests of one call, as they arrive in DATA frames."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from google.protobuf.message import Message

from mqlake.grpc.method import Method
from mqlake.grpc.outlet import Outlet, wake
from mqlake.grpc.parsing import parse_at_once
from mqlake.grpc.request_bytes import RequestBytes
from mqlake.grpc.status import GrpcError, GrpcStatus

WINDOW: Final = 1 << 20
"""Bytes that a client may send on one stream before more is granted."""
_AT_ONCE: Final = 16
"""Requests of a stream that are served before others have their turn."""


class RequestStream:
    """Collects the requests of a call, and grants the client more as they are taken.

    A call with one request that arrives as a whole needs none.

    Args:
        outlet: what the connection sends.
        number: the stream.
        method: what is called.
        most, setting: bytes that one request may have, and what sets this maximum.
    """

    __slots__ = (
        "_arrival",
        "_bytes",
        "_has_ended",
        "_held",
        "_is_closed",
        "_method",
        "_number",
        "_outlet",
        "_window",
    )

    def __init__(
        self, outlet: Outlet, number: int, method: Method, most: int, setting: str
    ) -> None:
        self._outlet, self._number, self._method = outlet, number, method
        self._bytes = RequestBytes(most, setting)
        self._window, self._held = WINDOW, 0
        self._has_ended = self._is_closed = False
        self._arrival: asyncio.Future[None] | None = None

    @property
    def is_incomplete(self) -> bool:
        """Return whether a request has begun, and is not complete."""
        return not self._is_closed and self._bytes.is_incomplete

    def receive(self, data: bytes, size: int, *, is_last: bool) -> bool:
        """Add the content of a DATA frame; return whether the window allows it.

        Args:
            size: what the frame counts in the window.
        """
        self._window -= size
        if self._window < 0:
            return False
        self._has_ended = is_last
        if not self._is_closed:
            self._bytes.add(data)
            self._hold(self._bytes.held)
            wake(self._arrival)
        return True

    def take_only(self) -> bytes | None:
        """Return the only request of the call; None until all has arrived.

        Raises:
            GrpcError: it is compressed or too large, or the call has not exactly one.
        """
        missing = self._bytes.missing()
        if not self._has_ended:
            if missing > self._window:
                self._grant(missing)
            return None
        message = self._bytes.take()
        if message is None or self._bytes.held:
            text = "the call has not exactly one whole request"
            raise GrpcError(GrpcStatus.INTERNAL, text)
        self._hold(0)
        return message

    async def messages(self) -> AsyncGenerator[Message]:
        """Yield the requests as they arrive.

        Raises:
            GrpcError: one is compressed, too large, incomplete, or no message.
        """
        count = 0
        while not self._is_closed:
            missing = self._bytes.missing()
            if not missing:
                message = self._bytes.take()
                assert message is not None
                self._hold(self._bytes.held)
                if self._window < WINDOW // 2 and not self._has_ended:
                    self._grant(WINDOW - self._bytes.held)
                yield await self._parse(message)
                count += 1
                if not count % _AT_ONCE:
                    await asyncio.sleep(0)
            elif self._has_ended:
                if self._bytes.held:
                    raise GrpcError(GrpcStatus.INTERNAL, "the last request is not complete")
                return
            else:
                if missing > self._window:
                    self._grant(missing)
                self._arrival = self._outlet.new_waiter()
                await self._arrival

    async def _parse(self, message: bytes) -> Message:
        kind = self._method.request
        parsed = parse_at_once(kind, message) or await self._outlet.large.parse(kind, message)
        return parsed[0]

    def _grant(self, window: int) -> None:
        """Let the client send so many bytes from now on."""
        if window > self._window:
            self._outlet.grant(self._number, window - self._window)
            self._window = window

    def _hold(self, size: int) -> None:
        """Count what has arrived of requests that are not served yet."""
        if size != self._held:
            self._outlet.count_partial(size - self._held)
            self._held = size

    def close(self) -> None:
        """Forget what has arrived, and accept no more requests."""
        self._is_closed = True
        self._hold(0)
        self._bytes.clear()
