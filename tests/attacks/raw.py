"""Connections of an attacker: plain sockets, so that an attack costs the attacker little."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from mqlake.protocol.command import Command
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader


@contextmanager
def connections(port: int, count: int, *, receive: int = 0) -> Generator[list[socket.socket]]:
    """Open connections to a port of this machine, until the block ends.

    Args:
        receive: bytes that the system keeps for one that does not read; 0 for the system's choice.
    """
    with ExitStack() as undo:
        found = [undo.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            if receive:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
            one.connect(("127.0.0.1", port))
        yield found


def push(one: socket.socket, data: bytes, seconds: float = 20.0) -> bool:
    """Send data; say whether the other side took all of it."""
    one.settimeout(seconds)
    try:
        one.sendall(data)
    except OSError:
        return False
    return True


def answers(one: socket.socket, count: int, seconds: float = 60.0) -> list[Command]:
    """Read so many answers, fewer if the connection is closed before."""
    one.settimeout(seconds)
    reader, found = FrameReader(Limits()), list[Command]()
    while len(found) < count:
        try:
            data = one.recv(1 << 18)
        except ConnectionError:
            break
        if not data:
            break
        found += reader.feed(data)
    return found
