"""Stop listening without losing connections that were just accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress


async def stop_listening(servers: Iterable[asyncio.Server]) -> None:
    """Close servers; connections that they have accepted reach their protocols first.

    CPython up to 3.12 neither serves nor closes a connection that is accepted in the round of the
    loop in which its server is closed (`Server._attach` fails).
    """
    loop, servers = asyncio.get_running_loop(), list(servers)
    for server in servers:
        for listening in server.sockets:
            with suppress(RuntimeError):  # uvloop has its own way.
                loop.remove_reader(listening.fileno())
    try:
        await asyncio.sleep(0)
    finally:  # also if the caller is cancelled
        for server in servers:
            server.close()
