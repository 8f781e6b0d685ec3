"""What a connection may take of memory, time and attention."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Limits of the connections of one server or client.

    Attributes:
        frame: longest frame in bytes; upstream's `com.rocketmq.remoting.frameMaxLength`.
        header: longest header of a frame in bytes.
        buffered: bytes of frames begun but not yet complete, over all connections.
        in_flight: requests of one connection that wait for their answer (parked pulls count).
        write_buffer: bytes that wait for one connection to read them before it is closed.
        connections: open at once.
        idle: seconds without a byte in or out before a connection is closed; upstream's
            `serverChannelMaxIdleTimeSeconds`. 0: never.
    """

    frame: int = 16 * 1024 * 1024
    header: int = 1024 * 1024
    buffered: int = 512 * 1024 * 1024
    in_flight: int = 16_384
    write_buffer: int = 64 * 1024 * 1024
    connections: int = 20_000
    idle: float = 120.0
