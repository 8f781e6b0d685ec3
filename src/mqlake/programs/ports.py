"""Find free ports."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

from mqlake.errors import MqlakeError

_TRIES = 1000
PORTS = range(10_000, 32_768)
"""These are below the ports that systems use for outgoing connections: a client that keeps
connecting to a port on which nobody listens may otherwise be connected to itself.
"""


def free_port(*distances: int) -> int:
    """Return a free port of the loopback interface; those at `distances` from it are free, too.

    Another process may take it before it is used, but that is rare.

    Raises:
        MqlakeError: there is no free port.
    """
    for _ in range(_TRIES):
        with ExitStack() as held:
            port = random.choice(PORTS)  # noqa: S311
            try:
                for distance in (0, *distances):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port + distance))
            except (OSError, OverflowError):
                continue
            return port
    raise MqlakeError("no free port on this machine")
