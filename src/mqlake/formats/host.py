"""Read and write the host fields of a record (docs/formats/host.md).

Four or sixteen address bytes, then the port as a 32-bit number.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from mqlake.errors import FormatError

V4_SIZE = 4 + 4
V6_SIZE = 16 + 4

_V4 = Struct(">4BI")
_V6 = Struct(">8HI")


@lru_cache(maxsize=1024)  # a log's records name few hosts
def decode_host(data: bytes) -> str:
    """Return "127.0.0.1:10911" for 8 bytes, "[2001:db8:0:0:0:0:0:1]:10911" for 20.

    IPv6 addresses stand uncompressed, as Java's `Inet6Address.getHostAddress` writes them.

    Raises:
        FormatError: any other number of bytes.
    """
    if len(data) == V4_SIZE:
        return "{}.{}.{}.{}:{}".format(*_V4.unpack(data))
    if len(data) == V6_SIZE:
        *groups, port = _V6.unpack(data)
        return f"[{':'.join(f'{group:x}' for group in groups)}]:{port}"
    raise FormatError(f"a host has {V4_SIZE} or {V6_SIZE} bytes, not {len(data)}")


def encode_host(text: str) -> bytes:
    """Return the 8 or 20 bytes of "address:port"; IPv6 addresses stand in brackets.

    Raises:
        FormatError: not an address and a port.
    """
    import ipaddress

    address, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or "%" in address:
        raise FormatError(f"not a host and port: {text[:80]!r}")
    try:
        if address.startswith("[") and address.endswith("]"):
            packed = ipaddress.IPv6Address(address[1:-1]).packed
        else:
            packed = ipaddress.IPv4Address(address).packed
        return packed + int(port).to_bytes(4, "big")
    except (ValueError, OverflowError):
        raise FormatError(f"not a host and port: {text[:80]!r}") from None
