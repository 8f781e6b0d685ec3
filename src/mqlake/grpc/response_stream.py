"""The responses of one call, as HEADERS, DATA and trailers."""

from __future__ import annotations

import asyncio
from typing import Final

from google.protobuf.message import Message

from mqlake.grpc import responses
from mqlake.grpc.http2.sending import StreamOutput
from mqlake.grpc.outlet import Outlet, wake
from mqlake.grpc.responses import PREFIX_SIZE
from mqlake.grpc.status import GrpcStatus

_MUCH: Final = 1 << 16
"""Bytes of responses that wait before the handler is asked for more."""


class ResponseStream:
    """Sends the responses of a call and its end, as fast as the client allows.

    Args:
        outlet: what the connection sends.
        number: the stream.

    Attributes:
        output: what waits until the client allows it to be sent.
        sent: bytes of the responses.
    """

    __slots__ = ("_has_headers", "_outlet", "_progress", "output", "sent")

    def __init__(self, outlet: Outlet, number: int) -> None:
        self._outlet = outlet
        self.output = StreamOutput(number, outlet.windows.first_window)
        self.sent = 0
        self._has_headers = False
        self._progress: asyncio.Future[None] | None = None

    def send_only(self, response: Message) -> None:
        """Send the only response of a call, and its end."""
        message = response.SerializeToString()
        self.sent = len(message)
        outlet, output = self._outlet, self.output
        if outlet.windows.takes_at_once(len(message) + PREFIX_SIZE, output):
            outlet.write(responses.whole(output.number, message))
        else:
            self._send_message(message)
            self.end(GrpcStatus.OK)

    def send(self, response: Message) -> None:
        """Send one of several responses."""
        message = response.SerializeToString()
        self.sent += len(message)
        self._send_message(message)

    def _send_message(self, message: bytes) -> None:
        outlet, output = self._outlet, self.output
        if not self._has_headers:
            self._has_headers = True
            outlet.write(responses.headers(output.number))
        outlet.send_data(output, responses.prefixed(message))

    def end(self, status: GrpcStatus, message: str = "") -> None:
        """Send the end of the call after what waits."""
        output = self.output
        last = responses.trailers(output.number, status, message, is_first=not self._has_headers)
        if output.waiting:
            output.finish(last)
        else:
            self._outlet.write(last)

    async def drain(self) -> None:
        """Wait until the client has read enough that more can be sent."""
        while self.output.waiting > _MUCH or self._outlet.is_choked:
            self._progress = self._outlet.new_waiter()
            await self._progress

    def note_moved(self) -> None:
        """Note that some of what waited was sent."""
        wake(self._progress)
