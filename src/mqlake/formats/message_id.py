"""Make and parse message ids: offset ids and unique keys (docs/formats/message_id.md).

Upstream: `MessageDecoder.createMessageId`, `decodeMessageId`, `MessageClientIDSetter`.
Both kinds are 32 upper-case hex digits (IPv4) or 56 (IPv6), so only their source tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats import host

_HEX = re.compile(r"[0-9A-Fa-f]*")
_OFFSET = Struct(">q")
_OFFSET_BITS = (1 << 64) - 1
_V4_DIGITS = 2 * (host.V4_SIZE + _OFFSET.size)
_V6_DIGITS = 2 * (host.V6_SIZE + _OFFSET.size)
_UNIQUE_KEY_TAIL = Struct(
    ">"
    "H"  # process id, low 16 bits
    "I"  # hash of the class loader
    "I"  # milliseconds since the start of the month, in the producer's time zone
    "H"  # counter
)


def encode_message_id(store_host: bytes, physical_offset: int) -> str:
    """Return the offset id of the record at `physical_offset` of the broker `store_host`.

    `store_host` is the record's store-host field: 8 or 20 bytes.

    Raises:
        FormatError: another number of bytes.
    """
    return f"{_host_digits(store_host)}{physical_offset & _OFFSET_BITS:016X}"


def encode_message_ids(store_host: bytes, physical_offsets: Sequence[int]) -> str:
    """Return the offset ids of several records of a broker, joined by commas.

    Raises:
        FormatError: as `encode_message_id`.
    """
    # One form for all of them: there are hundreds in a batch.
    form = ",".join([f"{_host_digits(store_host)}%016X"] * len(physical_offsets))
    return form % tuple(physical_offsets)


@lru_cache(64)
def _host_digits(store_host: bytes) -> str:
    if len(store_host) not in (host.V4_SIZE, host.V6_SIZE):
        raise FormatError(f"a store host has 8 or 20 bytes, not {len(store_host)}")
    return store_host.hex().upper()


def decode_message_id(text: str) -> tuple[str, int]:
    """Return the store host ("127.0.0.1:10911") and the physical offset of an offset id.

    Raises:
        FormatError: not 32 or 56 hex digits.
    """
    data = _parse_hex(text)
    return host.decode_host(data[: -_OFFSET.size]), _OFFSET.unpack(data[-_OFFSET.size :])[0]


class UniqueKey(NamedTuple):
    """The parts of a unique key that a Java producer made.

    Attributes:
        ip: address of the producer, 4 or 16 bytes.
        pid: low 16 bits of its process id.
        class_loader_hash: 32 bits.
        milliseconds: since the first of the month in the producer's time zone; 32 bits.
        counter: 16 bits, one more each message.
    """

    ip: bytes
    pid: int
    class_loader_hash: int
    milliseconds: int
    counter: int

    @classmethod
    def parse(cls, text: str) -> UniqueKey:
        """Return the parts of a unique key.

        Raises:
            FormatError: not 32 or 56 hex digits; a producer may set any text as the key.
        """
        data = _parse_hex(text)
        at = len(data) - _UNIQUE_KEY_TAIL.size
        return cls(data[:at], *_UNIQUE_KEY_TAIL.unpack_from(data, at))

    def text(self) -> str:
        """Return the key as producers write it: upper-case hex digits."""
        return (self.ip + _UNIQUE_KEY_TAIL.pack(*self[1:])).hex().upper()


def _parse_hex(text: str) -> bytes:
    if len(text) not in (_V4_DIGITS, _V6_DIGITS) or not _HEX.fullmatch(text):
        raise FormatError(f"a message id has 32 or 56 hex digits, but this is {text[:80]!r}")
    return bytes.fromhex(text)
