"""The transport below a connection, from its beginning to its end, with or without TLS."""

from __future__ import annotations

import asyncio
from typing import Final

from mqlake.remoting.tls.layer import TlsLayer

_CLOSING: Final = 1.0
"""Seconds within which data that was written before a close must reach the other side."""


class Wire:
    """The transport of one connection: none at first, then the socket's or a TLS layer.

    Without a transport, all methods do nothing.

    Attributes:
        is_open: whether what is written now could reach the other side.
        tls: the TLS layer; None in clear text.
        last_active: loop time of the last byte in or out.
        last_received: loop time of the last byte in.
    """

    __slots__ = ("_loop", "_transport", "is_open", "last_active", "last_received", "tls")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self.tls: TlsLayer | None = None
        self.is_open = False
        self.last_active = self.last_received = 0.0

    def begin(self, transport: asyncio.Transport) -> None:
        """Use a transport that was just connected."""
        self._transport = transport
        # Data that the system does not accept at once is noticed at once.
        transport.set_write_buffer_limits(high=0)
        self.note_received()
        self.is_open = True

    def secure(self, layer: TlsLayer) -> None:
        """Read and write through TLS from now on."""
        self._transport = self.tls = layer

    @property
    def is_over(self) -> bool:
        """Whether it was open, and is no longer."""
        return self._transport is not None and not self.is_open

    @property
    def socket_number(self) -> int:
        """The file descriptor of the socket; -1 without one."""
        transport = self._transport
        found = transport.get_extra_info("socket") if transport is not None else None
        return -1 if found is None else int(found.fileno())

    def note_received(self) -> float:
        """Note that bytes have arrived; return the loop time."""
        now = self.last_active = self.last_received = self._loop.time()
        return now

    def note_active(self, time: float) -> None:
        """Note that bytes were read or written elsewhere at a loop time."""
        self.last_active = max(self.last_active, time)

    # Reading and writing

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if self._transport is not None:
            self._transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Write data. What the system does not accept waits in the transport."""
        if self._transport is not None:
            self.last_active = self._loop.time()
            self._transport.write(data)

    @property
    def unwritten(self) -> int:
        """Bytes that wait in the transport."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    # The end

    def end(self) -> None:
        """Note that the connection is about to be closed, or was lost."""
        self.is_open = False

    def close(self) -> None:
        """Close it once everything is written, or after a moment."""
        if self._transport is not None:
            self._transport.close()
            self._loop.call_later(_CLOSING, self._transport.abort)

    def abort(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            self._transport.abort()
