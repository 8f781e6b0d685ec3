"""How much memory, time and attention a connection may take."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Limits of the connections of one server or client.

    Attributes:
        frame: maximum length of a frame in bytes; upstream's
            `com.rocketmq.remoting.frameMaxLength`.
        header: maximum length of a frame's header in bytes.
        memory: maximum bytes that are held for all connections together: incomplete frames,
            requests that wait for an answer, answers that wait to be read. Beyond it, the greediest
            connections are closed.
        frame_time: seconds within which a frame that has begun must be complete. 0: no limit.
        in_flight: maximum requests of one connection that wait for their answer (parked pulls
            count).
        bodies: maximum bytes of the bodies of those requests.
        write_buffer: bytes that wait for one connection to read them before it is closed.
        connections: maximum open connections; fewer if this process may not open so many files.
        share: percent of the connections that one address may open while more than half of them are
            open.
        idle: seconds without a byte in or out before a connection is closed; upstream's
            `serverChannelMaxIdleTimeSeconds`. 0: never.
        handshake: seconds within which a TLS handshake must be complete.
    """

    frame: int = 16 * 1024 * 1024
    header: int = 256 * 1024
    memory: int = 192 * 1024 * 1024
    frame_time: float = 60.0
    in_flight: int = 16_384
    bodies: int = 64 * 1024 * 1024
    write_buffer: int = 64 * 1024 * 1024
    connections: int = 20_000
    share: int = 100
    idle: float = 120.0
    handshake: float = 30.0
