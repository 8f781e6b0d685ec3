"""Check that a server accepts connections, before Spark tries for minutes."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from mqlake.errors import JobError

TIMEOUT = 5.0
"""Seconds."""


def require_server(what: str, url: str, default_port: int) -> None:
    """Raise JobError unless one of the addresses in `scheme://host:port,host:port` answers."""
    scheme, _, addresses = url.partition("://")
    for address in addresses.split(","):
        if _answers(f"{scheme}://{address}", default_port):
            return
    raise JobError(f"no {what} answers at {url}: check that it is running, and the address")


def _answers(url: str, default_port: int) -> bool:
    try:
        where = urlsplit(url)
        address = (where.hostname or "", where.port or default_port)
        socket.create_connection(address, TIMEOUT).close()
    except (OSError, ValueError):
        return False
    return True
