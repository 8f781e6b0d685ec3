"""How much memory, time and attention a client of gRPC may take."""

from __future__ import annotations

from typing import NamedTuple


class GrpcLimits(NamedTuple):
    """Limits of the connections of one server.

    Attributes:
        message: maximum bytes of a request to send messages; upstream's
            `grpcMaxInboundMessageSize`.
        other: maximum bytes of any other request: setting `grpcMaxInboundRequestSize`.
        headers: maximum bytes of the headers of a call, decoded and as RFC 9113 counts them.
        memory: maximum bytes that are held for all connections together: incomplete requests,
            requests that are served, responses that wait to be read. Beyond it, the greediest
            connections are closed.
        calls: maximum calls of one connection at a time; upstream's
            `grpcMaxConcurrentCallsPerConnection`.
        request_time: seconds within which more of a request that has begun must arrive. 0: no
            limit.
        resets: calls that one connection may reset within 10 seconds, besides one for each call
            that was answered.
        idle_frames: frames that belong to no call, of one connection within 10 seconds.
        write_buffer: bytes that wait for one connection to read them before it is closed.
        connections: maximum open connections; fewer if this process may not open so many files.
        share: percent of the connections that one address may open while more than half of them are
            open.
        idle: seconds without a call before a connection is closed, and without a byte before it is
            asked whether it is alive; upstream's `grpcClientIdleTimeMills`. 0: never.
        handshake: seconds within which a TLS handshake must be complete.
    """

    message: int = 8 * 1024 * 1024
    other: int = 1024 * 1024
    headers: int = 16 * 1024
    memory: int = 128 * 1024 * 1024
    calls: int = 4096
    request_time: float = 60.0
    resets: int = 2_000
    idle_frames: int = 50_000
    write_buffer: int = 64 * 1024 * 1024
    connections: int = 20_000
    share: int = 100
    idle: float = 120.0
    handshake: float = 30.0
