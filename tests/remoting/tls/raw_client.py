"""A TLS client whose bytes are the test's affair, and the records of TLS 1.3 that it forges."""

from __future__ import annotations

import asyncio
import hmac
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mqlake.protocol.command import Command
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.remoting.serving import Raw

HANDSHAKE: Final = 22
KEY_UPDATE: Final = bytes([24, 0, 0, 1, 0])
"""Asks for nothing in return."""
_SIZE: Final = 48


class RawTls:
    """One connection, whose bytes may be changed before they are sent."""

    def __init__(self, raw: Raw, context: ssl.SSLContext) -> None:
        self.raw = raw
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._frames = FrameReader(Limits())
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="127.0.0.1")

    def hello(self) -> bytes:
        """Return the first bytes of the handshake."""
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()

    async def send(self, data: bytes) -> None:
        with suppress(ConnectionError):
            self.raw.writer.write(data)
            await self.raw.writer.drain()

    async def shake_hands(self, part: int = 1 << 20) -> None:
        """Complete the handshake, and send its bytes in parts of a size."""
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._send_parts(part)
                data = await self.raw.reader.read(1 << 16)
                if not data:
                    raise EOFError from None
                self.incoming.write(data)
            else:
                await self._send_parts(part)
                return

    async def command(self) -> Command:
        """Return the next command that arrives.

        Raises:
            EOFError: the connection has ended.
        """
        while True:
            with suppress(ssl.SSLWantReadError):
                for each in self._frames.feed(self.tls.read(1 << 16)):
                    assert isinstance(each, Command)
                    return each
                continue
            data = await self.raw.reader.read(1 << 16)
            if not data:
                raise EOFError
            self.incoming.write(data)

    async def _send_parts(self, size: int) -> None:
        data = self.outgoing.read()
        for at in range(0, len(data), size):
            await self.send(data[at : at + size])
            await asyncio.sleep(0)


class Forger:
    """Encrypts records of TLS_AES_256_GCM_SHA384 with the keys of a client, for a connection on
    which the client has sent no data.

    Args:
        log: the file to which the client's context has written its secrets (`keylog_filename`).
    """

    def __init__(self, log: Path) -> None:
        lines = (line.split() for line in log.read_text().splitlines())
        (self._secret,) = (
            bytes.fromhex(words[2]) for words in lines if words[0] == "CLIENT_TRAFFIC_SECRET_0"
        )
        self._number = 0

    def record(self, content: bytes, kind: int) -> bytes:
        """Return a record."""
        size = len(content) + 17
        header = bytes([23, 3, 3]) + size.to_bytes(2)
        start = int.from_bytes(self._derive(b"iv", 12))
        nonce = (start ^ self._number).to_bytes(12)
        self._number += 1
        key = AESGCM(self._derive(b"key", 32))
        return header + key.encrypt(nonce, content + bytes([kind]), header)

    def key_update(self) -> bytes:
        """Return a record that changes the keys."""
        made = self.record(KEY_UPDATE, HANDSHAKE)
        self._secret, self._number = self._derive(b"traffic upd", _SIZE), 0
        return made

    def _derive(self, label: bytes, size: int) -> bytes:
        label = b"tls13 " + label
        info = size.to_bytes(2) + bytes([len(label)]) + label + b"\0"
        return hmac.digest(self._secret, info + b"\x01", "sha384")[:size]
