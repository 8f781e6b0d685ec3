"""Headers of the PROXY protocol, versions 1 and 2, to the client's address.

Upstream: Netty's `HAProxyMessageDecoder`, which `NettyRemotingServer.HandshakeHandler` installs.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

from mqlake.errors import MqlakeError

SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
"""What a header of version 2 begins with."""
_TEXT: Final = b"PROXY "
"""What a header of version 1 begins with."""
_LONGEST_LINE: Final = 107
"""Bytes of a header of version 1, with its line end."""
_FIXED: Final = 16
"""Bytes of a header of version 2 before the addresses."""
MOST: Final = _FIXED + 216
"""Bytes of a header that are read at most. A header of version 2 may have 65,551, but what follows
the addresses says nothing about them.
"""
_VERSION: Final = 2
_LOCAL, _PROXY = 0, 1
_IP4, _IP6, _UNIX = 1, 2, 3
_ADDRESSES: Final = {_IP4: 4, _IP6: 16, _UNIX: 108}
"""Bytes of one address, by family."""
_TRANSPORTS: Final = frozenset((1, 2))
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_LAST_PORT: Final = 65_535
_PARTS: Final = 6


class ProxyHeaderError(MqlakeError):
    """What begins like a header of the PROXY protocol is not a valid one."""


class ProxyHeader(NamedTuple):
    """What a header says.

    Attributes:
        size: its bytes, of which some may not have arrived yet.
        client: "ip:port" or "[ip6]:port" of the client; None if the header names none, such as that
            of a proxy's own health check.
    """

    size: int
    client: str | None


def may_begin(data: bytes) -> bool:
    """Return whether the first bytes of a connection may be those of a header."""
    return SIGNATURE.startswith(data[: len(SIGNATURE)]) or _TEXT.startswith(data[: len(_TEXT)])


def read(data: bytes) -> ProxyHeader | None:
    """Return the header with which data begins (`may_begin`); None if too little has arrived.

    Raises:
        ProxyHeaderError: it is not a header.
    """
    if data[0] == SIGNATURE[0]:
        return _read_binary(data)
    return _read_line(data)


def _read_line(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, _LONGEST_LINE)
    if end < 0:
        if len(data) >= _LONGEST_LINE:
            raise ProxyHeaderError(f"no line end in the first {_LONGEST_LINE} bytes")
        return None
    size = end + 2
    parts = data[:end].decode("latin-1").split(" ")
    if parts[1] == "UNKNOWN":
        return ProxyHeader(size, None)
    if parts[1] not in ("TCP4", "TCP6") or len(parts) != _PARTS:
        raise ProxyHeaderError("a line without protocol, addresses and ports")
    version = 4 if parts[1] == "TCP4" else 6
    client, _ = _address(parts[2], version), _address(parts[3], version)
    port, _ = _port(parts[4]), _port(parts[5])
    return ProxyHeader(size, _text(client, port))


def _address(text: str, version: int) -> IPv4Address | IPv6Address:
    try:
        found = ip_address(text)
    except ValueError:
        raise ProxyHeaderError("a text that is no address") from None
    if found.version != version or "%" in text:
        raise ProxyHeaderError("an address of another protocol")
    return found


def _port(text: str) -> int:
    if _PORT.fullmatch(text) is None or int(text) > _LAST_PORT:
        raise ProxyHeaderError("a text that is no port")
    return int(text)


def _read_binary(data: bytes) -> ProxyHeader | None:
    if len(data) < _FIXED:
        return None
    version, command = data[12] >> 4, data[12] & 15
    family, transport = data[13] >> 4, data[13] & 15
    size = int.from_bytes(data[14:_FIXED])
    if version != _VERSION or command not in (_LOCAL, _PROXY):
        raise ProxyHeaderError(f"version and command are {data[12]:#04x}")
    if command == _LOCAL or not data[13]:
        return ProxyHeader(_FIXED + size, None)
    if family not in _ADDRESSES or transport not in _TRANSPORTS:
        raise ProxyHeaderError(f"family and protocol are {data[13]:#04x}")
    one = _ADDRESSES[family]
    needed = 2 * one + (0 if family == _UNIX else 4)
    if size < needed:
        raise ProxyHeaderError(f"{size} bytes of addresses instead of {needed}")
    if len(data) < _FIXED + needed:
        return None
    client = None
    if family != _UNIX:
        ports = _FIXED + 2 * one
        port = int.from_bytes(data[ports : ports + 2])
        client = _text(ip_address(data[_FIXED : _FIXED + one]), port) if port else None
    return ProxyHeader(_FIXED + size, client)


def _text(address: IPv4Address | IPv6Address, port: int) -> str:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            return f"[{address}]:{port}"
        address = address.ipv4_mapped
    return f"{address}:{port}"
