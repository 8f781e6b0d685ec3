"""A client whose bytes are sent and received when a script says so."""

from __future__ import annotations

import os
import socket
import ssl
import struct
from contextlib import suppress
from typing import Final, Protocol

from mqlake.protocol.command import Command
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.broker.lane.mixed.forged_tls import Forged, of_version

HOST: Final = "127.0.0.1"
LITTLE: Final = 4096
"""Bytes of the buffers of a connection whose client reads slowly."""
MUCH: Final = 1 << 20


class Seal(Protocol):
    """What the bytes of a connection become on the wire."""

    def seal(self, data: bytes) -> bytes:
        """Return what is sent for data."""
        ...

    def open(self, data: bytes) -> bytes:
        """Return the data in what was received."""
        ...

    def step(self) -> tuple[bytes, bool]:
        """Return what is to be sent before any data, and whether data can be sent now."""
        ...

    def end(self) -> bytes:
        """Return what says that there is no more data."""
        ...


class Clear:
    """No TLS."""

    def seal(self, data: bytes) -> bytes:
        return data

    def open(self, data: bytes) -> bytes:
        return data

    def step(self) -> tuple[bytes, bool]:
        return b"", True

    def end(self) -> bytes:
        return b""


class Tls:
    """TLS, of the version that its context asks for.

    Args:
        forges: whether records are encrypted here, so that some may be what no library sends.
    """

    def __init__(self, context: ssl.SSLContext, *, forges: bool = False) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=HOST)
        self._is_ready, self._forges = False, forges
        self._keys = str(context.keylog_filename or os.devnull)
        self._flight = b""
        self.forged: Forged | None = None

    def step(self) -> tuple[bytes, bool]:
        if not self._is_ready:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            else:
                self._is_ready = True
                if self._forges:
                    self.forged = of_version(self._tls.version() or "", self._keys, self._flight)
        return self._outgoing.read(), self._is_ready

    def seal(self, data: bytes) -> bytes:
        if self.forged is not None:
            return self.forged.record(data)
        self._tls.write(data)
        return self._outgoing.read()

    def open(self, data: bytes) -> bytes:
        if not self._is_ready and len(self._flight) < LITTLE:
            self._flight += data
        self._incoming.write(data)
        found = b""
        with suppress(ssl.SSLError):  # Part of a record; the end; or what it takes for an attack.
            while self._is_ready and (more := self._tls.read(1 << 16)):
                found += more
        return found

    def end(self) -> bytes:
        if self.forged is None:
            with suppress(ssl.SSLError):
                self._tls.unwrap()
        return self._outgoing.read()


class Client:
    """One connection.

    Args:
        port: the broker's.
        is_slow: whether its buffers are small.

    Attributes:
        address: its own, as the broker knows it.
        seal: what its bytes become.
        pending: what is to be sent.
        answers: what has arrived, in order.
        is_over: whether the other side has ended the connection.
    """

    def __init__(self, port: int, seal: Seal, *, is_slow: bool = False) -> None:
        self._socket = socket.socket()
        if is_slow:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LITTLE)
        self._socket.connect((HOST, port))
        self._socket.setblocking(False)
        self.address = "{}:{}".format(*self._socket.getsockname())
        self._frames = FrameReader(Limits())
        self.seal, self.pending = seal, bytearray()
        self.answers: list[Command] = []
        self.is_over = False

    def write(self, data: bytes, record: int) -> None:
        """Let data wait to be sent, in parts that are encrypted each by itself."""
        for at in range(0, len(data), record):
            self.pending += self.seal.seal(data[at : at + record])

    def push(self, most: int = MUCH) -> int:
        """Send so many bytes, if the system takes them; return how many it took."""
        if self.is_over or not self.pending:
            return 0
        try:
            sent = self._socket.send(memoryview(self.pending)[:most].tobytes())
        except BlockingIOError:
            return 0
        except OSError:
            self.pending.clear()
            return 0
        del self.pending[:sent]
        return sent

    def pull(self, most: int = MUCH) -> int:
        """Receive at most so many bytes; return how many."""
        if self.is_over:
            return 0
        try:
            data = self._socket.recv(most)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            self.is_over = True
            return 0
        for each in self._frames.feed(self.seal.open(data)):
            assert isinstance(each, Command)
            self.answers.append(each)
        return len(data)

    def shut(self) -> None:
        """Send nothing more."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """End the connection without a word."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        self.is_over = True
        self._socket.close()
