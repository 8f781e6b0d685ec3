"""The servers that clients wait for, so that a program can report them.

A client notes its waits in the `AwaitedServers` that `WATCHED` has when the client is created.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token
from typing import Final

from mqlake.protocol.signature import Credentials
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Handler
from mqlake.remoting.tls.options import ClientTls
from mqlake.storage.clock import Clock, SystemClock


class AwaitedServers:
    """The servers whose connection or answer is awaited now.

    Pulls that wait for messages are not noted. An event loop notes the waits; any thread may read
    them.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._waits: dict[object, tuple[str, float]] = {}

    @contextmanager
    def awaiting(self, address: str) -> Generator[None]:
        """Note that a server is awaited until the block ends."""
        wait = object()
        self._waits[wait] = address, self._clock.monotonic()
        try:
            yield
        finally:
            del self._waits[wait]

    def seconds(self) -> dict[str, float]:
        """Return how long each server has been awaited, by address, the longest wait first."""
        now, found = self._clock.monotonic(), dict[str, float]()
        for address, begin in self._waits.copy().values():  # In the order in which they began.
            found.setdefault(address, now - begin)
        return found


WATCHED: Final[ContextVar[AwaitedServers | None]] = ContextVar("awaited servers", default=None)
"""Where clients that are created in this context note the servers that they wait for."""


@contextmanager
def watched_servers(clock: Clock | None = None) -> Generator[AwaitedServers]:
    """Yield the servers that clients wait for which are created in the block."""
    servers = AwaitedServers(clock)
    token: Token[AwaitedServers | None] = WATCHED.set(servers)
    try:
        yield servers
    finally:
        WATCHED.reset(token)


class WatchedClient(RemotingClient):
    """A client that notes which servers it waits for, if anybody wants to know.

    Args:
        handlers: serve the requests of servers, by request code.
        opened: called with "host:port" when a connection is opened.
        tls: how all connections use TLS; None if they are in clear text.
        credentials: sign all requests; None for unsigned requests.
    """

    def __init__(
        self,
        handlers: Mapping[int, Handler] | None,
        *,
        opened: Callable[[str], object] | None,
        tls: ClientTls | None,
        credentials: Credentials | None,
    ) -> None:
        super().__init__(handlers, opened=opened, tls=tls, credentials=credentials)
        self._servers = WATCHED.get()

    def awaiting(self, address: str) -> AbstractContextManager[None]:
        """Note that the answer of "host:port" is awaited until the block ends."""
        return nullcontext() if self._servers is None else self._servers.awaiting(address)

    async def connect(self, address: str) -> Peer:
        """Return the connection to "host:port"; open it if necessary.

        Raises:
            MqlakeError: as for `RemotingClient.connect`.
        """
        with self.awaiting(address):
            return await super().connect(address)
