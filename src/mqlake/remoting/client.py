"""A client: one connection to each address, shared by all requests to it.

Upstream: `NettyRemotingClient`.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import Callable, Mapping

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.signature import Credentials
from mqlake.remoting.connection import Peer, Request
from mqlake.remoting.errors import ConnectionFailedError, ConnectTimeoutError
from mqlake.remoting.limits import Limits
from mqlake.remoting.request_router import RequestRouter
from mqlake.remoting.route import Handler, Route
from mqlake.remoting.shared import Shared
from mqlake.remoting.tls.client import ClientContexts, secure
from mqlake.remoting.tls.options import ClientTls
from mqlake.storage.fork_guard import ForkGuard

_LONGEST_PORT, _SHOWN = 20, 300
_ERRNO = re.compile(r"\[Errno ([0-9]{1,4})\]")


class RemotingClient:
    """Sends requests, and serves the requests of servers, on one event loop.

    Args:
        opened: called with "host:port" when a connection is opened.
        tls: how all connections use TLS; None if they are in clear text.
        credentials: sign all requests; None for unsigned requests.
    """

    def __init__(
        self,
        handlers: Mapping[int, Handler] | None = None,
        limits: Limits | None = None,
        *,
        connect_timeout: float = 3.0,
        opened: Callable[[str], object] | None = None,
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._tls = ClientContexts(tls) if tls else None
        self._opened, self._credentials = opened, credentials
        self._limits = limits or Limits(idle=0)
        routes = (Route(code, handler) for code, handler in (handlers or {}).items())
        self._router = RequestRouter(routes, self._limits)
        self._connect_timeout = connect_timeout
        self._peers: dict[str, asyncio.Task[Peer]] = {}
        self._connected: dict[str, Peer] = {}
        self._shared: Shared[Peer] | None = None
        self._is_closed = False
        # The connections of a parent must not get bytes of its child.
        self._fork_guard = ForkGuard(
            "the connections to servers", kind="client", error=ConnectionFailedError
        )

    async def request(
        self,
        address: str,
        command: Command | Request,
        timeout: float = 3.0,  # noqa: ASYNC109 (the error says how long it was)
    ) -> Command:
        """Return the response to a request, whatever its code.

        Raises:
            ConnectionFailedError: there is no connection to "host:port", or it was lost.
            RequestTimeoutError: no response within `timeout` seconds of sending.
        """
        self._fork_guard.check()
        peer = self.connected(address) or await self.connect(address)
        return await peer.request(command, timeout)

    async def call(
        self,
        address: str,
        command: Command,
        timeout: float = 3.0,  # noqa: ASYNC109 (the error says how long it was)
    ) -> Command:
        """Return the response to a request if its code is SUCCESS.

        Raises:
            RemotingError: the response has another code.
            ConnectionFailedError, RequestTimeoutError: as for `request`.
        """
        response = await self.request(address, command, timeout)
        if response.code != ResponseCode.SUCCESS:
            raise RemotingError(
                response.code, response.remark or f"{address}: code {response.code}"
            )
        return response

    async def oneway(self, address: str, command: Command) -> None:
        """Send a request that needs no response.

        Raises:
            ConnectionFailedError: there is no connection to "host:port".
        """
        self._fork_guard.check()
        peer = self.connected(address) or await self.connect(address)
        peer.oneway(command)

    async def connect(self, address: str) -> Peer:
        """Return the connection to "host:port"; open it if necessary.

        Raises:
            ConnectionFailedError: nobody listens there, or the address is invalid; with TLS, also
                if the server does not use it, or is not the one it should be.
            ConnectTimeoutError: the server neither accepted nor refused within the given time.
            MqlakeError: a file for TLS cannot be used.
        """
        if self._is_closed:
            raise ConnectionFailedError(f"{address}: the client is closed")
        task = self._peers.get(address)
        if task is None or _is_over(task):
            task = asyncio.ensure_future(self._open(address))
            task.add_done_callback(_look_at)
            self._peers[address] = task
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._is_closed and task.cancelled():
                raise ConnectionFailedError(f"{address}: the client is closed") from None
            raise

    def connected(self, address: str) -> Peer | None:
        """Return the connection to "host:port" if it is open now."""
        peer = self._connected.get(address)
        return peer if peer is not None and not peer.is_closed else None

    async def close(self) -> None:
        """Close all connections, and open no new ones."""
        self._is_closed = True
        tasks, self._peers = list(self._peers.values()), {}
        self._connected.clear()
        for task in tasks:
            if not task.done():
                task.cancel()
            elif not _is_over(task):
                task.result().close()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._router.stop(0)

    async def _open(self, address: str) -> Peer:
        host, port = split_address(address)
        loop = asyncio.get_running_loop()
        shared = self._shared = self._shared or Shared(loop, self._limits, is_server=False)
        context = await self._tls.get() if self._tls else None
        shared.credentials = self._credentials
        try:
            async with asyncio.timeout(self._connect_timeout):
                raw, peer = await loop.create_connection(
                    lambda: Peer(self._router, shared), host, port
                )
                if context is not None:
                    await secure(peer, raw, shared, context, host)
        except TimeoutError:
            raise ConnectTimeoutError(
                f"{address}: no connection within {self._connect_timeout:g} s"
            ) from None
        except OSError as error:
            raise ConnectionFailedError(f"{address}: {_reason(error)}") from None
        except ValueError as error:  # A host name that cannot be encoded for DNS.
            raise ConnectionFailedError(f"{address}: {error}") from None
        self._connected[address] = peer
        if self._opened is not None:
            self._opened(address)
        return peer


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of "host:port" or "[ip6]:port".

    Raises:
        ConnectionFailedError: the text is not an address.
    """
    host, colon, port = address.rpartition(":")
    # Python converts no text of thousands of digits.
    is_number = port.isascii() and port.isdigit() and len(port) <= _LONGEST_PORT
    if not colon or not host or "/" in host or not is_number or int(port) > 65_535:
        raise ConnectionFailedError(f"{address[:_SHOWN]!r} is not an address of the form host:port")
    if "," in host:
        raise ConnectionFailedError(f"{address[:_SHOWN]!r}: addresses are separated by ;")
    return host.strip("[]"), int(port)


def _reason(error: OSError) -> str:
    """Return the system's words: asyncio's own are calls and addresses."""
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    number = error.errno
    if number is None and (found := _ERRNO.search(str(error))):  # Of several addresses.
        number = int(found[1])
    return os.strerror(number) if number else str(error)


def _look_at(task: asyncio.Task[Peer]) -> None:
    """Retrieve a failure that nobody waits for any more."""
    if not task.cancelled():
        task.exception()


def _is_over(task: asyncio.Task[Peer]) -> bool:
    """Return whether the connection is closed, or was never opened."""
    if not task.done():
        return False
    return task.cancelled() or task.exception() is not None or task.result().is_closed
