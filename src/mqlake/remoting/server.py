"""A server: listens on one or more ports and passes requests to handlers.

Upstream: `NettyRemotingServer`.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import CannotListenError
from mqlake.remoting.latencies import Latencies
from mqlake.remoting.limits import Limits
from mqlake.remoting.listening import stop_listening
from mqlake.remoting.memory_budget import MemoryBudget
from mqlake.remoting.proxy_protocol.detection import Network, ProxyDetection
from mqlake.remoting.quotas.quotas import Quotas
from mqlake.remoting.request_router import RequestRouter
from mqlake.remoting.route import Check, Route
from mqlake.remoting.shared import DirectReader, Shared
from mqlake.remoting.tls.detection import TlsDetection
from mqlake.remoting.tls.options import ServerTls, TlsMode
from mqlake.remoting.tls.server import ServerContexts

_BACKLOG: Final = 1024
_AT_ONCE: Final = 500
"""Connections that are checked, and perhaps closed, in one round of the loop."""
_OTHER_FILES: Final = 2048
"""Files that are reserved for other uses of this process, such as a store."""


class RemotingServer:
    """Serves requests on one event loop.

    Args:
        routes: the handler of each request code.
        limits: the limits of its connections.
        checks: called before all routes.
        tls: whether connections may, or must, use TLS; None if they must not.
        latencies: measures requests; None if that is not wanted.
        quotas: limits addresses and users; None without such limits. Its checks must be among
            `checks`.
        proxies: whose connections may begin with a header of the PROXY protocol, which names the
            client; others that do are closed.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        limits: Limits | None = None,
        checks: Sequence[Check] = (),
        tls: ServerTls | None = None,
        latencies: Latencies | None = None,
        quotas: Quotas | None = None,
        *,
        proxies: Sequence[Network] = (),
    ) -> None:
        self._limits = limits or Limits()
        self._quotas, self._proxies = quotas, proxies
        self._tls = ServerContexts(tls or ServerTls())
        self._router = RequestRouter(routes, self._limits, checks, latencies)
        self._servers: list[asyncio.Server] = []
        self._shared: Shared[Peer] | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def peers(self) -> frozenset[Peer]:
        """The open connections."""
        return frozenset(self._shared.peers) if self._shared else frozenset()

    @property
    def budget(self) -> MemoryBudget | None:
        """The memory budget of all connections, None before the start."""
        return self._shared.budget if self._shared else None

    @property
    def counts(self) -> dict[int, int]:
        """The number of served requests, without refused ones, by request code."""
        return self._router.counts

    @property
    def refused(self) -> int:
        """How many requests were refused because too many of their connection waited."""
        return self._router.refused

    @property
    def latencies(self) -> Latencies | None:
        """The durations of requests; None if they are not measured."""
        return self._router.latencies

    def read_directly(self, reader: DirectReader[Peer]) -> None:
        """Let a reader read connections instead of their transports.

        To be called once the server has started.
        """
        assert self._shared is not None
        self._shared.direct = reader

    def flush(self) -> None:
        """Write everything that was sent in this round of the loop."""
        if self._shared is not None:
            self._shared.flush()

    def note_served(self, code: int, took: float, count: int) -> None:
        """Count requests that a `DirectReader` has served with success.

        Args:
            took: seconds in which these requests were served together.
        """
        self._router.note_served(code, took, count)

    def note_answered(
        self, code: int, response_code: int, took: float, count: int, address: str
    ) -> None:
        """Count requests that a `DirectReader` let wait (`RequestRouter.note_answered`)."""
        self._router.note_answered(code, response_code, took, count, address)

    def set_memory(self, size: int) -> None:
        """Set the bytes that all connections together may hold from now on (`Limits.memory`)."""
        self._limits = self._limits._replace(memory=size)
        if self._shared is not None:
            self._shared.budget.set_limit(size)

    def set_share(self, percent: int) -> None:
        """Set the share of connections that one address may open from now on (`Limits.share`)."""
        self._limits = self._limits._replace(share=percent)
        if self._shared is not None:
            self._shared.share = percent

    async def start(self, host: str, port: int) -> int:
        """Listen on a port, 0 for any free one; return it. May be called for several ports.

        Raises:
            CannotListenError: another server listens on the address, or it is not this machine's.
            MqlakeError: a file for TLS cannot be used.
        """
        loop = asyncio.get_running_loop()
        await self._tls.start()
        if self._shared is None:
            router = self._router
            self._shared = Shared(loop, self._limits, router.headers, router.runs)
            self._shared.latencies = router.latencies
            self._shared.connections = min(self._limits.connections, _connections())
            self._shared.quotas = self._quotas
            self._sweep_later()
        self._shared.is_closed = False
        try:
            server = await loop.create_server(self._accept, host, port, backlog=_BACKLOG)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise CannotListenError(f"cannot listen on {host}:{port}: {reason}") from None
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def connect(self, transport: asyncio.Transport) -> Peer:
        """Serve a client that is in this process, as if it had connected to a port.

        To be called once the server has started. The client passes its frames to `Inlet.receive`,
        and `Peer.connection_lost` ends the connection.

        Args:
            transport: receives the frames for the client. Its "peername" is the client's address.
        """
        assert self._shared is not None
        peer = Peer(self._router, self._shared)
        peer.connection_made(transport)
        return peer

    async def stop(self, grace: float = 1.0) -> None:
        """Accept no more connections, let running handlers end, and close all connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        await stop_listening(self._servers)
        await self._tls.stop()
        await self._router.stop(grace)
        if self._shared is not None:
            self._shared.is_closed = True
        for peer in self.peers:
            peer.close()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    def _accept(self) -> ProxyDetection[Peer]:
        assert self._shared is not None
        peer = Peer(self._router, self._shared)
        following: Peer | TlsDetection[Peer] = peer
        if self._tls.mode is not TlsMode.DISABLED:
            following = TlsDetection(peer, self._shared, self._tls)
        return ProxyDetection(peer, following, self._shared, self._proxies)

    def _sweep_later(self) -> None:
        limits = [limit for limit in (self._limits.idle, self._limits.frame_time) if limit]
        if self._shared is not None and limits:
            self._sweeper = self._shared.loop.call_later(min(limits) / 4, self._sweep)

    def _sweep(self) -> None:
        """Check all connections, a few in each round of the loop."""
        self._sweep_later()
        self._check_some(iter(self.peers))

    def _check_some(self, peers: Iterator[Peer]) -> None:
        assert self._shared is not None
        now = self._shared.loop.time()
        some = list(islice(peers, _AT_ONCE))
        for peer in some:
            peer.inlet.note_directly_read()
            if self._limits.idle and peer.last_active < now - self._limits.idle:
                peer.close(f"silent for {self._limits.idle:g} s")
            elif self._limits.frame_time:
                peer.check_frame(now - self._limits.frame_time)
        if some:
            self._shared.loop.call_soon(self._check_some, peers)


def _connections() -> int:
    """Return how many connections leave room for the other files of this process."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(files - _OTHER_FILES, files // 2)


class RemotingService:
    """A program that serves requests with one server: what it says about them."""

    _server: RemotingServer

    @property
    def peers(self) -> frozenset[Peer]:
        """The open connections."""
        return self._server.peers

    def connect(self, transport: asyncio.Transport) -> Peer:
        """Serve a client that is in this process (`RemotingServer.connect`)."""
        return self._server.connect(transport)

    @property
    def served(self) -> Mapping[int, int]:
        """How many requests were served, without refused ones, by code."""
        return self._server.counts

    @property
    def refused(self) -> int:
        """How many requests were refused because too many of their connection waited."""
        return self._server.refused

    @property
    def latencies(self) -> Latencies | None:
        """How long requests took; None if nobody asks for that."""
        return self._server.latencies
