"""Records of TLS that no library lets a client send: new keys, another handshake."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Final, Protocol

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.remoting.tls.raw_client import Forger

DATA, HANDSHAKE = 23, 22
_HELLO: Final = bytes((1, 0, 0, 41, 3, 3)) + bytes(32) + bytes((0, 0, 2, 0xC0, 0x2C, 1, 0))
"""A ClientHello that asks to negotiate again."""
_SERVER_RANDOM: Final = slice(11, 43)
"""Where it is in the first record of a server."""
CIPHER_1_2: Final = "ECDHE-ECDSA-AES256-GCM-SHA384"


class Forged(Protocol):
    """Encrypts what a client sends from the end of the handshake on."""

    def record(self, data: bytes) -> bytes:
        """Return a record with data."""
        ...

    def surprise(self) -> bytes:
        """Return a record without data that the server does not expect."""
        ...


class Rekeying:
    """TLS 1.3: the surprise changes the keys of all that follows.

    Args:
        log: the file with the secrets of the connection.
    """

    def __init__(self, log: Path) -> None:
        self._forger = Forger(log)

    def record(self, data: bytes) -> bytes:
        return self._forger.record(data, DATA)

    def surprise(self) -> bytes:
        return self._forger.key_update()


class Renegotiating:
    """TLS 1.2: the surprise asks for another handshake.

    Args:
        log: the file with the secrets of the connection.
        server: the server's random number.
    """

    def __init__(self, log: Path, server: bytes) -> None:
        (line,) = (each.split() for each in log.read_text().splitlines() if "CLIENT_RANDOM" in each)
        client, secret = bytes.fromhex(line[1]), bytes.fromhex(line[2])
        block = _expanded(secret, b"key expansion" + server + client, 72)
        self._key, self._salt = AESGCM(block[:32]), block[64:68]
        self._number = 1  # The last message of the handshake is encrypted, too.

    def record(self, data: bytes, kind: int = DATA) -> bytes:
        number, head = self._number.to_bytes(8), bytes((kind, 3, 3))
        self._number += 1
        sealed = self._key.encrypt(self._salt + number, data, number + head + len(data).to_bytes(2))
        return head + (8 + len(sealed)).to_bytes(2) + number + sealed

    def surprise(self) -> bytes:
        return self.record(_HELLO, HANDSHAKE)


def of_version(version: str, log: str, flight: bytes) -> Forged:
    """Return what encrypts for a client.

    Args:
        version: the negotiated one.
        log: the file to which its context has written its secrets.
        flight: the first bytes of the server.
    """
    if version == "TLSv1.3":
        return Rekeying(Path(log))
    return Renegotiating(Path(log), flight[_SERVER_RANDOM])


def _expanded(secret: bytes, seed: bytes, size: int) -> bytes:
    """Return pseudorandom bytes (RFC 5246, 5)."""
    found, step = b"", seed
    while len(found) < size:
        step = hmac.digest(secret, step, "sha384")
        found += hmac.digest(secret, step + seed, "sha384")
    return found[:size]
