"""Ports that are free."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from mqlake.errors import MqlakeError

_TRIES = 100


def free_port(*distances: int) -> int:
    """Return a free port of the loopback; those at `distances` from it are free too.

    Another process may take it before it is used; that is seldom, for the system hands out others
    first.

    Raises:
        MqlakeError: there is none.
    """
    for _ in range(_TRIES):
        with ExitStack() as held:
            first = held.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                for distance in distances:
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port + distance))
            except (OSError, OverflowError):
                continue
            return port
    raise MqlakeError("no free port on this machine")
