"""Requests of pages: none waits long, and a server that does not answer is not asked each time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from mqlake.admin.admin import Admin
from mqlake.client.access import ClientAccess
from mqlake.client.cluster import TIMEOUT
from mqlake.console.cluster.aged import NO_ANSWER, AgedValues
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.route import ClusterInfo, TopicRouteData
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Body, Command
from mqlake.protocol.command import request as request_of
from mqlake.protocol.header import Header
from mqlake.protocol.signature import Credentials
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError

_CLUSTER_AGE: Final = 3.0
_ROUTE_AGE: Final = 1.0
_READS: Final = ("GET_", "QUERY_", "VIEW_", "SEARCH_", "PULL_")
_PROBE: Final = RequestCode.GET_BROKER_RUNTIME_INFO
"""A server that answers it answers, whatever it says: name servers refuse it."""
_PAUSE: Final = 2.0
"""Seconds between two probes of a server that does not answer."""
_FORGOTTEN: Final = 60.0
"""Seconds after the last request of a page for which such a server is probed."""


class BoundedAdmin(Admin):
    """An `Admin` for pages.

    A request that only reads may take a few seconds. A server that has not answered is probed in
    the background until it does; meanwhile, requests to it fail at once, so that only the first
    page waits for it. If no name server answers, the brokers and routes of the last answer are
    used.

    Args:
        seconds: that a request has which reads; one that changes something has more.
        now: returns seconds.

    Attributes:
        kept: answers that are kept for a few seconds.
    """

    def __init__(
        self,
        name_servers: str,
        access: ClientAccess,
        credentials: Credentials | None,
        seconds: float,
        now: Callable[[], float],
    ) -> None:
        super().__init__(name_servers, tls=access.tls, credentials=credentials)
        self._seconds, self._now = seconds, now
        self.kept = AgedValues(now)
        self._silent: dict[str, MqlakeError] = {}
        self._asked: dict[str, float] = {}
        self._probes: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Close all connections, and probe no more."""
        for task in self._probes:
            task.cancel()
        await asyncio.gather(*self._probes, return_exceptions=True)
        await super().close()

    @property
    def silent_servers(self) -> Mapping[str, MqlakeError]:
        """The servers that do not answer now, by address, and how the last request failed."""
        return self._silent

    async def cluster_info(self) -> ClusterInfo:
        """Return all brokers that are registered, as name servers stated seconds ago."""
        return await self.kept.get("brokers", _CLUSTER_AGE, super().cluster_info)

    async def route(self, topic: str) -> TopicRouteData:
        """Return the route of a topic, as name servers stated seconds ago."""
        fetch = partial(super().route, topic)
        return await self.kept.get(("route", topic), _ROUTE_AGE, fetch)

    async def ask(
        self,
        address: str,
        code: RequestCode,
        header: Header | None = None,
        body: Body = b"",
        seconds: float = TIMEOUT,
    ) -> Command:
        """Return the answer of one server, as `Cluster.ask` does."""
        ask = super().ask
        return await self._bounded(
            address, code, seconds, lambda limit: ask(address, code, header, body, limit)
        )

    async def request(
        self, address: str, code: RequestCode, header: Header | None = None, body: Body = b""
    ) -> Command:
        """Return the answer of one server, whatever its code."""
        command = request_of(code, header, body)
        return await self._bounded(
            address, code, TIMEOUT, lambda limit: self.client.request(address, command, limit)
        )

    async def _bounded(
        self,
        address: str,
        code: RequestCode,
        seconds: float,
        ask: Callable[[float], Awaitable[Command]],
    ) -> Command:
        self._check(address)
        limit = self._limit(code, seconds)
        try:
            async with asyncio.timeout(limit):
                return await ask(limit)
        except (*NO_ANSWER, TimeoutError) as error:
            raise self._noted(address, error, limit, is_usual=seconds == TIMEOUT) from None

    def _limit(self, code: RequestCode, seconds: float) -> float:
        is_reading = code.name.startswith(_READS)
        return self._seconds if is_reading and seconds == TIMEOUT else seconds

    def _check(self, address: str) -> None:
        reason = self._silent.get(address)
        if reason is not None:
            self._asked[address] = self._now()
            raise type(reason)(str(reason))

    def _noted(
        self, address: str, error: Exception, limit: float, *, is_usual: bool
    ) -> MqlakeError:
        """Return the error of a request without an answer. Begin to probe the server.

        A request with a timeout of its own waits for more than the server, such as for a client.
        """
        if isinstance(error, MqlakeError):
            reason = error
        else:
            reason = RequestTimeoutError(f"{address}: no answer within {limit:g} s")
        is_silent = is_usual or isinstance(error, ConnectionFailedError)
        if is_silent and address not in self._silent:
            self._silent[address], self._asked[address] = reason, self._now()
            task = asyncio.create_task(self._probe(address))
            self._probes.add(task)
            task.add_done_callback(self._probes.discard)
        return reason

    async def _probe(self, address: str) -> None:
        """Wait until a server answers, or no page asks for it any more."""
        try:
            while self._now() - self._asked[address] < _FORGOTTEN:
                await asyncio.sleep(_PAUSE)
                with suppress(MqlakeError):
                    await self.client.request(address, request_of(_PROBE), self._seconds)
                    return
        finally:
            del self._silent[address], self._asked[address]
