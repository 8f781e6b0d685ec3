"""How long a connection may be idle, silent, or stuck."""

from __future__ import annotations

from typing import Final

from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frame_decoder import FrameDecoder
from mqlake.grpc.http2.header_blocks import HeaderBlocks
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.outlet import Outlet
from mqlake.grpc.served_calls import ServedCalls

_SILENT: Final = 30.0
"""Seconds within which a client that was asked whether it is alive must have sent something."""


class Timeouts:
    """Decides whether a connection must end because nothing happens on it.

    Args:
        limits: how long nothing may happen.
        decoder, headers: the frames that have begun.
        calls: the calls that are served.
        outlet: what is sent.

    Attributes:
        received: the loop time at which the client last sent something.
    """

    def __init__(
        self,
        limits: GrpcLimits,
        decoder: FrameDecoder,
        headers: HeaderBlocks,
        calls: ServedCalls,
        outlet: Outlet,
    ) -> None:
        self._limits = limits
        self._decoder, self._headers, self._calls, self._outlet = decoder, headers, calls, outlet
        self.received = 0.0
        self._has_pinged = False

    def note_received(self, now: float) -> None:
        """Note that the client has sent something."""
        self.received, self._has_pinged = now, False

    def is_idle(self, now: float) -> bool:
        """Return whether no call was served for longer than connections are kept."""
        idle = self._limits.idle
        return idle > 0 and not self._calls.by_stream and now - self._calls.last > idle

    def ping(self, now: float) -> None:
        """Ask a client with calls whether it is alive if it has been silent for long."""
        idle = self._limits.idle
        if idle and not self._has_pinged and now - self.received > idle:
            self._has_pinged = True
            self._outlet.write(frames.frame(frames.PING, 0, 0, bytes(8)))

    def fault(self, now: float) -> str | None:
        """Return why the connection must be closed at once; None if it need not."""
        limits, before = self._limits, now - self._limits.request_time
        if self._has_pinged and now - self.received > limits.idle + _SILENT:
            return f"silent for {limits.idle + _SILENT:g} s"
        if not self._decoder.has_preface and now - self._calls.last > limits.handshake:
            return f"it has not begun as HTTP/2 within {limits.handshake:g} s"
        if limits.request_time and self._is_unread(before):
            return f"it has not let anything be sent for {limits.request_time:g} s"
        if limits.request_time and self._is_incomplete(before):
            return f"a frame that it began {limits.request_time:g} s ago is incomplete"
        return None

    def _is_unread(self, before: float) -> bool:
        """Return whether data waits for the connection's window since a loop time."""
        windows = self._outlet.windows
        return windows.waiting > 0 and windows.window <= 0 and windows.moved < before

    def _is_incomplete(self, before: float) -> bool:
        """Return whether a frame, or a block of headers, is incomplete since a loop time."""
        decoder, headers = self._decoder, self._headers
        if headers.is_incomplete and headers.began < before:
            return True
        return decoder.incomplete > 0 and decoder.began < before and not self._outlet.is_choked

    def reset_stuck_calls(self, now: float) -> None:
        """Reset the calls that have not progressed for as long as a request may take."""
        if self._limits.request_time:
            self._calls.reset_stuck(now - self._limits.request_time)
