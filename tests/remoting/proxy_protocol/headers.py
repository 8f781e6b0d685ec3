"""Headers of the PROXY protocol as proxies write them."""

from __future__ import annotations

import random
from ipaddress import ip_address

from mqlake.remoting.proxy_protocol.header import SIGNATURE

FAMILIES = {4: 1, 6: 2}


def line(client: str, port: int, server: str = "10.0.0.9", own: int = 10911) -> bytes:
    """Return a header of version 1."""
    protocol = f"TCP{ip_address(client).version}"
    return f"PROXY {protocol} {client} {server} {port} {own}\r\n".encode()


def binary(
    client: str, port: int, server: str = "10.0.0.9", extra: bytes = b"", command: int = 1
) -> bytes:
    """Return a header of version 2, with what follows the addresses."""
    ip = ip_address(client)
    ports = port.to_bytes(2) + (10911).to_bytes(2)
    body = ip.packed + ip_address(server).packed + ports + extra
    return start(0x20 | command, FAMILIES[ip.version] << 4 | 1, len(body)) + body


def start(version: int, family: int, size: int) -> bytes:
    """Return the first 16 bytes of a header of version 2."""
    return SIGNATURE + bytes([version, family]) + size.to_bytes(2)


def any_header(rng: random.Random) -> tuple[bytes, str]:
    """Return a valid header, and the client that it names."""
    port = rng.randrange(1, 1 << 16)
    if rng.random() < 0.5:
        client, server = ".".join(str(rng.randrange(256)) for _ in range(4)), "10.0.0.9"
    else:
        client, server = str(ip_address(rng.randbytes(16))), "fd00::9"
    named = f"[{client}]:{port}" if ":" in client else f"{client}:{port}"
    if rng.random() < 0.5:
        return line(client, port, server), named
    extra = rng.randbytes(rng.choice((0, 1, 7, 300, 20_000)))
    return binary(client, port, server, extra), named
