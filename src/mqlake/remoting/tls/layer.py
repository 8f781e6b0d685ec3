"""TLS between a socket's transport and the protocol of a connection.

asyncio's own layer allocates 256 KiB for each connection, and does not return the bytes that were
read before it was installed: the first byte tells whether there is TLS at all. This one reads into
the buffer that all connections share, and limits what one connection may occupy.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, cast

from mqlake.remoting.tls.contexts import reason_of
from mqlake.remoting.tls.handshakes import Handshakes

_READ: Final = 1 << 15
"""Encrypted bytes that are read at a time."""
_LONGEST_RECORD: Final = (1 << 14) + 512
"""Bytes of a record of TLS, at most."""
_LEAST_READ: Final = 1 << 12
"""Bytes for which there must be room to read at all."""
_HANDSHAKE_READ: Final = 1 << 14
_LONGEST_HANDSHAKE: Final = 1 << 18
"""Bytes of the other side's handshake."""
_MOST_EMPTY: Final = 1 << 15
"""Bytes that may arrive without any data: twice a record. Whoever sends more sends records that
only change keys, and each of these takes about 10 microseconds.
"""
_WRITE: Final = 1 << 18
"""Bytes that are encrypted in one round of the loop."""


class Below(NamedTuple):
    """What the layers of one server or client share.

    Attributes:
        loop: the event loop.
        room: returns the buffer for encrypted bytes.
        handshakes: continues handshakes.
        seconds: the time within which a handshake must be complete.
    """

    loop: asyncio.AbstractEventLoop
    room: Callable[[], memoryview]
    handshakes: Handshakes
    seconds: float


class Decrypted(NamedTuple):
    """What was received without the socket's transport.

    Attributes:
        size: bytes of decrypted data.
        is_open: whether more can be received so. If not, the transport must read the socket.
        fault: how the other side has broken the protocol after this data; "" if it has not.
    """

    size: int
    is_open: bool = True
    fault: str = ""


class TlsLayer(asyncio.BufferedProtocol, asyncio.Transport):
    """The protocol of a socket's transport, and the transport of the protocol above.

    Args:
        raw: the socket's transport, of which it becomes the protocol.
        upper: the protocol above. It is notified of the end, not of the beginning.
        failed: called with the reason if the other side breaks the protocol; it must abort.
        context: certificates, and what is checked of the other side's.
        host: the name that a server's certificate must have, if the context checks that.

    Attributes:
        ready: done once the handshake is complete; its exception is the reason of a failure.
        is_drained: whether no data can be decrypted before more arrives.
    """

    def __init__(
        self,
        raw: asyncio.Transport,
        upper: asyncio.BufferedProtocol,
        below: Below,
        failed: Callable[[str], object],
        context: ssl.SSLContext,
        *,
        is_server: bool,
        host: str | None = None,
    ) -> None:
        super().__init__()
        self._raw, self._upper, self._below, self._failed = raw, upper, below, failed
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, is_server, host)
        # With a buffer, it returns a number.
        self._read = cast("Callable[[int, memoryview], int]", self._tls.read)
        self._socket = raw.get_extra_info("socket")
        self.ready: asyncio.Future[None] = below.loop.create_future()
        self._is_server = is_server
        self._buffer = memoryview(b"")
        self._plain: deque[memoryview] = deque()
        self._plain_size = 0
        self._is_open = False
        self._is_over = False
        self._is_paused = self._is_choked = self._is_upper_choked = self._is_closing = False
        self._received = 0
        self.is_drained = False
        self._deadline = below.loop.call_later(below.seconds, self._too_slow)
        raw.set_protocol(self)

    def start(self, data: bytes | memoryview = b"") -> None:
        """Begin the handshake, with what has already arrived."""
        self._receive(data)

    @property
    def held(self) -> int:
        """Bytes that have arrived and were not passed upwards."""
        return self._incoming.pending + self._tls.pending()

    # The handshake

    def step(self) -> None:
        """Continue the handshake with the bytes that have arrived."""
        if self._is_over:
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            self._raw.resume_reading()
        except ssl.SSLError as error:
            self._flush()  # The other side learns it, too.
            self._fail(f"the TLS handshake failed: {reason_of(error)}")
        except Exception as error:  # noqa: BLE001 (others wait for their turn)
            self._fail(f"the TLS handshake failed: {error}")
        else:
            self._deadline.cancel()
            self._flush()
            self._is_open, self._received = True, 0
            if not self.ready.done():
                self.ready.set_result(None)
            self.resume_reading()

    def _too_slow(self) -> None:
        if not self._is_open:
            self._fail(f"its TLS handshake is not complete after {self._below.seconds:g} s")

    def _fail(self, reason: str) -> None:
        if self._is_over:
            return
        self._end(reason)
        if self._is_open or self._is_server:
            self._failed(reason)
        else:  # `ready` has the reason.
            self._raw.abort()

    def _end(self, reason: str) -> None:
        self._is_over = True
        self._deadline.cancel()
        self._plain.clear()
        self._plain_size = 0
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(reason))
            self.ready.exception()  # Perhaps nobody waits for it.

    # Reading: the protocol of the socket's transport

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return the buffer for the next encrypted bytes."""
        most = _READ if self._is_open else _HANDSHAKE_READ
        self._buffer = self._below.room()[:most]
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._receive(self._buffer[:nbytes])

    def _receive(self, data: bytes | memoryview) -> None:
        if self._is_over:
            return
        self._incoming.write(data)
        self.is_drained = False
        self._received += len(data)
        if self._is_open:
            self._deliver()
        elif self._received > _LONGEST_HANDSHAKE:
            self._fail(f"its TLS handshake has more than {_LONGEST_HANDSHAKE} bytes")
        else:
            self._raw.pause_reading()
            self._below.handshakes.add(self)

    def _deliver(self) -> None:
        """Pass data upwards until there is no more, or reading is paused."""
        while self._is_reading and self.held:
            buffer = self._upper.get_buffer(-1)
            count, fault = self._decrypt(memoryview(buffer))
            if count:
                self._upper.buffer_updated(count)
            if fault:
                self._fail(fault)
            elif not count:
                break
        if self._outgoing.pending and not self._is_over:
            self._flush()

    def _decrypt(self, buffer: memoryview) -> tuple[int, str]:
        """Fill a buffer; return how many bytes it has, and a fault."""
        read, total, size = self._read, 0, len(buffer)
        try:
            while total < size:
                count = read(size - total, buffer[total:])
                if not count:  # The other side has said that this was all.
                    self._below.loop.call_soon(self.close)
                    break
                total += count
                if not self.held:
                    break
        except ssl.SSLWantReadError:  # Part of a record has arrived.
            pass
        except ssl.SSLError as error:
            return total, f"TLS: {reason_of(error)}"
        self.is_drained = total < size
        if total:
            self._received = 0
        elif self._received > _MOST_EMPTY:
            return total, f"{self._received} bytes of TLS without data"
        return total, ""

    def receive_into(self, buffer: memoryview) -> Decrypted:
        """Receive from the socket, while its transport does not, and decrypt all of it."""
        # Data is shorter than what it was encrypted to, of which a part may have arrived before.
        room = min(len(buffer) - _LONGEST_RECORD, _READ)
        if room < _LEAST_READ or self.is_closing():
            return Decrypted(0, is_open=False)
        encrypted = self._below.room()[:room]
        try:
            size = os.readv(self._socket.fileno(), (encrypted,))
        except BlockingIOError:
            return Decrypted(0)
        except OSError:
            size = 0
        if not size:
            return Decrypted(0, is_open=False)
        self._incoming.write(encrypted[:size])
        self._received += size
        count, fault = self._decrypt(buffer)
        if self._outgoing.pending:
            # Later: if it chokes, the connection leaves whoever is about to take this data.
            self._below.loop.call_soon(self._flush)
        return Decrypted(count, fault=fault)

    def eof_received(self) -> None:
        """Let the transport close. A frame that was cut off counts for nothing."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("the other side closed the connection instead of completing the TLS handshake")
        self._upper.connection_lost(exc)

    # Reading: the transport of the protocol above

    def pause_reading(self) -> None:
        self._is_paused = True
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        self._below.loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if self._is_reading:
            self._deliver()
        if self._is_reading:
            self._raw.resume_reading()

    @property
    def _is_reading(self) -> bool:
        return self._is_open and not (self._is_paused or self._is_over or self._is_closing)

    # Writing

    def write(self, data: Any) -> None:
        if self._is_over or self._is_closing:
            return
        self._plain.append(memoryview(data))
        self._plain_size += len(data)
        if not self._is_upper_choked:
            self._encrypt()

    def _encrypt(self) -> None:
        """Write a part of what waits, and the rest once that is read, or in the next round."""
        room = _WRITE
        try:
            while self._plain and room > 0:
                piece = self._plain[0]
                count = self._tls.write(piece[:room])
                room -= count
                self._plain_size -= count
                if count == len(piece):
                    self._plain.popleft()
                else:
                    self._plain[0] = piece[count:]
        except ssl.SSLError as error:
            self._fail(f"TLS: {reason_of(error)}")
            return
        self._flush()
        if self._plain:
            self._choke()
            if not self._is_choked:
                self._below.loop.call_soon(self._write_on)

    def _write_on(self) -> None:
        if self._is_over or self._is_choked:
            return
        if self._plain:
            self._encrypt()
        if self._plain or self._is_choked or self._is_over:
            return
        if self._is_closing:
            self._shut_down()
        elif self._is_upper_choked:
            self._is_upper_choked = False
            self._upper.resume_writing()

    def _choke(self) -> None:
        if not self._is_upper_choked:
            self._is_upper_choked = True
            self._upper.pause_writing()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._raw.is_closing():
            self._raw.write(self._outgoing.read())

    def pause_writing(self) -> None:
        self._is_choked = True
        self._choke()

    def resume_writing(self) -> None:
        self._is_choked = False
        self._write_on()

    def get_write_buffer_size(self) -> int:
        return self._plain_size + self._raw.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._raw.set_write_buffer_limits(high, low)

    # The end

    def is_closing(self) -> bool:
        return self._is_closing or self._is_over or self._raw.is_closing()

    def close(self) -> None:
        if self._is_closing or self._is_over:
            return
        self._is_closing = True
        if not self._plain:
            self._shut_down()

    def _shut_down(self) -> None:
        """Tell the other side that this was all, and close."""
        if self._is_open:
            with suppress(ssl.SSLError):  # It does not wait for the other side's answer.
                self._tls.unwrap()
            self._flush()
        self._raw.close()

    def abort(self) -> None:
        self._end("the connection was closed")
        self._raw.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the certificate of the other side ("peercert"), or what the socket's transport
        returns.
        """
        if name == "peercert":
            return self._tls.getpeercert() if self._is_open else default
        return self._raw.get_extra_info(name, default)
