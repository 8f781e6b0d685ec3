"""A server of gRPC: listens, and passes calls to the handlers of its methods.

Upstream: `GrpcServer` of the proxy.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Final

from msgspec import structs

from mqlake.errors import MqlakeError
from mqlake.grpc.call import FinishedCall
from mqlake.grpc.connection import GrpcConnection
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.method import Method
from mqlake.grpc.served_call import ServedCall
from mqlake.grpc.server_state import ServerState
from mqlake.grpc.status import GrpcStatus
from mqlake.remoting.listening import stop_listening
from mqlake.remoting.proxy_protocol.detection import Network, ProxyDetection
from mqlake.remoting.tls.detection import TlsDetection
from mqlake.remoting.tls.options import ServerTls, TlsMode
from mqlake.remoting.tls.server import ServerContexts

_PROTOCOLS: Final = ("h2",)
"""What clients ask for above TLS."""
_BACKLOG: Final = 1024
_LOOK: Final = 1.0
"""Seconds between checks of deadlines."""
_TURN: Final = 0.002
"""Seconds of one round of the loop in which connections are checked."""
_OTHER_FILES: Final = 2048
"""Files that are reserved for other uses of this process, such as a store."""
_LINGERING: Final = 1.0
"""Seconds that handlers have to notice that the server stops."""
_LOOK_GRACE: Final = 0.01
"""Seconds between looks whether calls have ended while the server stops."""


class GrpcServer:
    """Serves calls on one event loop.

    Args:
        methods: what it serves.
        limits: the limits of its connections.
        tls: whether connections may, or must, use TLS; None if they must not.
        proxies: whose connections may begin with a header of the PROXY protocol, which names the
            client; others that do are closed.
        on_finished: called with each call that has ended, to count and to measure.
    """

    def __init__(
        self,
        methods: Iterable[Method],
        limits: GrpcLimits | None = None,
        *,
        tls: ServerTls | None = None,
        proxies: Sequence[Network] = (),
        on_finished: Callable[[FinishedCall], object] | None = None,
    ) -> None:
        self._methods = {method.path: method for method in methods}
        self._limits = limits or GrpcLimits()
        self._on_finished, self._proxies = on_finished, proxies
        options = structs.replace(tls or ServerTls(), protocols=_PROTOCOLS)
        self._tls = ServerContexts(options)
        self._servers: list[asyncio.Server] = []
        self._state: ServerState[GrpcConnection] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._next_sweep = 0.0

    @property
    def connections(self) -> frozenset[GrpcConnection]:
        """The open connections."""
        return frozenset(self._state.connections) if self._state else frozenset()

    @property
    def held(self) -> int:
        """Bytes that are held for all connections."""
        return self._state.budget.used if self._state else 0

    async def start(self, address: str, port: int) -> int:
        """Listen on a port, 0 for any free one; return it. May be called for several ports.

        Raises:
            MqlakeError: the server cannot listen on the address, or a file for TLS cannot be used.
        """
        loop = asyncio.get_running_loop()
        await self._tls.start()
        if self._state is None:
            limits = self._limits
            limits = limits._replace(connections=min(limits.connections, _connections()))
            self._state = ServerState[GrpcConnection](
                loop, limits, self._methods, self._on_finished
            )
        if self._timer is None:
            self._look_later()
        self._state.is_closed = False
        try:
            server = await loop.create_server(self._accept, address, port, backlog=_BACKLOG)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise MqlakeError(f"cannot listen on {address}:{port}: {reason}") from None
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def stop(self, grace: float = 1.0) -> None:
        """Accept no more connections and calls, let running calls end, and close all connections.

        Args:
            grace: seconds that running calls have.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await stop_listening(self._servers)
        await self._tls.stop()
        if self._state is not None:
            self._state.is_closed = True
            await self._end_calls(self._state, grace)
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    async def _end_calls(self, state: ServerState[GrpcConnection], grace: float) -> None:
        for connection in self.connections:
            connection.go_away()
        until = state.loop.time() + grace
        while state.loop.time() < until:
            if not any(one.has_short_calls for one in self.connections):
                break
            await asyncio.sleep(_LOOK_GRACE)
        connections = self.connections
        for connection in connections:
            connection.end_calls()
        until = state.loop.time() + _LINGERING
        while any(one.calls for one in connections) and state.loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_GRACE)
        for connection in connections:
            connection.close()

    def _accept(self) -> ProxyDetection[GrpcConnection]:
        state = self._state
        assert state is not None
        connection = GrpcConnection(state)
        following: GrpcConnection | TlsDetection[GrpcConnection] = connection
        if self._tls.mode is not TlsMode.DISABLED:
            following = TlsDetection(connection, state, self._tls)
        return ProxyDetection(connection, following, state, self._proxies)

    def _look_later(self) -> None:
        assert self._state is not None
        self._timer = self._state.loop.call_later(_LOOK, self._look)

    def _look(self) -> None:
        """End calls whose deadline has passed; now and then, check all connections."""
        self._look_later()
        state, limits = self._state, self._limits
        assert state is not None
        self._end_some(iter(state.overdue()))
        periods = [period for period in (limits.idle, limits.request_time) if period]
        now = state.loop.time()
        if periods and now >= self._next_sweep:
            self._next_sweep = now + min(periods) / 4
            self._check_some(iter(self.connections))

    def _end_some(self, overdue: Iterator[ServedCall]) -> None:
        """End calls, some in each round of the loop."""
        assert self._state is not None
        until = perf_counter() + _TURN
        for served in overdue:
            served.end(GrpcStatus.DEADLINE_EXCEEDED, "the deadline has passed")
            if perf_counter() >= until:
                self._state.loop.call_soon(self._end_some, overdue)
                return

    def _check_some(self, connections: Iterator[GrpcConnection]) -> None:
        """Check connections, some in each round of the loop."""
        assert self._state is not None
        now, until = self._state.loop.time(), perf_counter() + _TURN
        for connection in connections:
            connection.check(now)
            if perf_counter() >= until:
                self._state.loop.call_soon(self._check_some, connections)
                return


def _connections() -> int:
    """Return how many connections leave room for the other files of this process."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(files - _OTHER_FILES, files // 2)
