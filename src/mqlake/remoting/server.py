"""A server: listens on one port or more and hands requests to handlers.

Upstream: `NettyRemotingServer`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Final

from mqlake.errors import MqlakeError
from mqlake.remoting.connection import Peer, TakePeersRun
from mqlake.remoting.dispatch import Dispatcher, Handler
from mqlake.remoting.header import Header
from mqlake.remoting.limits import Limits
from mqlake.remoting.shared import Shared

_log: Final = logging.getLogger("mqlake.remoting")

_BACKLOG: Final = 1024


class RemotingServer:
    """Serves requests on one event loop.

    Args:
        handlers: by request code.
        limits: of its connections.
        typed: headers that are decoded together with the frame, by request code. This is faster
            where a handler asks for just this type, and `Command.fields` has no others then.
        runs: what serves many frames with binary headers at once, by the request code of the first.
    """

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        limits: Limits | None = None,
        *,
        typed: Mapping[int, type[Header]] | None = None,
        runs: Mapping[int, TakePeersRun] | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._dispatcher = Dispatcher(handlers, self._limits.in_flight)
        self._typed, self._runs = typed, runs
        self._servers: list[asyncio.Server] = []
        self._shared: Shared | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def peers(self) -> frozenset[Peer]:
        """The connections that are open."""
        return frozenset(self._shared.peers) if self._shared else frozenset()

    async def start(self, host: str, port: int) -> int:
        """Listen on a port, 0 for any that is free; return it. May be called for several.

        Raises:
            MqlakeError: the address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        if self._shared is None:
            self._shared = Shared(loop, self._limits, self._typed, self._runs)
            self._sweep_later()
        try:
            server = await loop.create_server(self._accept, host, port, backlog=_BACKLOG)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise MqlakeError(f"cannot listen on {host}:{port}: {reason}") from None
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def stop(self, grace: float = 1.0) -> None:
        """Take no more connections, let running handlers end, close all connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for server in self._servers:
            server.close()
        await self._dispatcher.stop(grace)
        for peer in self.peers:
            peer.close()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    def _accept(self) -> Peer:
        assert self._shared is not None
        return Peer(self._dispatcher, self._shared)

    def _sweep_later(self) -> None:
        if self._shared is not None and self._limits.idle:
            self._sweeper = self._shared.loop.call_later(self._limits.idle / 4, self._sweep)

    def _sweep(self) -> None:
        assert self._shared is not None
        silent_since = self._shared.loop.time() - self._limits.idle
        for peer in self.peers:
            if peer.last_active < silent_since:
                _log.info("%s: closed: silent for %g s", peer.address, self._limits.idle)
                peer.close()
        self._sweep_later()
