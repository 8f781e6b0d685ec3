"""A cluster as its name servers know it: where its brokers are, and which topics they have.

Upstream: `MQClientAPIImpl`, `MQClientInstance`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Self

from mqlake.client.awaited_servers import WatchedClient
from mqlake.client.errors import ClientError
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.route import BrokerData, ClusterInfo, TopicRouteData
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Body, Command, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.header import Header
from mqlake.protocol.headers.namesrv import GetRouteInfoHeader
from mqlake.protocol.signature import Credentials
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError
from mqlake.remoting.route import Handler
from mqlake.remoting.tls.options import ClientTls

_log = logging.getLogger(__name__)

MASTER = 0
TIMEOUT = 10.0
"""Seconds within which a server must answer."""
_ROUTE_TIMEOUT = 3.0
"""Seconds within which each name server must return a topic's route, if all are asked."""

_OF_EACH = frozenset(
    (
        RequestCode.GET_ROUTEINFO_BY_TOPIC,
        RequestCode.GET_BROKER_CLUSTER_INFO,
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
    )
)
"""Requests that every name server serves."""

NO_NAME_SERVER = (
    "this is not a name server, but perhaps a broker: give the address of a name server, whose"
    " port is 9876 by default"
)
"""What to do about a server that does not know these requests."""


class MasterBroker:
    """A master: its name, its cluster and its address."""

    def __init__(self, name: str, cluster: str, address: str) -> None:
        self.name, self.cluster, self.address = name, cluster, address


class Cluster:
    """Asks name servers and brokers, over one connection to each.

    `async with Cluster(name_servers) as cluster:` closes it.

    Args:
        name_servers: "host:port", several separated by `;`.
        handlers: serve the requests of brokers, by request code.
        opened: called with "host:port" when a connection is opened.
        tls: how the connections use TLS; None for clear text.
        credentials: sign all requests; None for brokers without authentication.

    Attributes:
        client: the client for the connections.
        silent: the name servers that did not answer the last request for a route, and why; also
            the servers that are not name servers.
        refusing: those that refused it, and why.

    Raises:
        ClientError: the name servers are not a text.
    """

    def __init__(
        self,
        name_servers: str,
        handlers: Mapping[int, Handler] | None = None,
        opened: Callable[[str], object] | None = None,
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self.name_servers = _addresses(name_servers)
        self.client = WatchedClient(handlers, opened=opened, tls=tls, credentials=credentials)
        self.silent: dict[str, MqlakeError] = {}
        self.refusing: dict[str, str] = {}
        self._is_signing = credentials is not None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self.client.close()

    async def ask(
        self,
        address: str,
        code: RequestCode,
        header: Header | None = None,
        body: Body = b"",
        seconds: float = TIMEOUT,
    ) -> Command:
        """Return the answer of one server.

        Args:
            seconds: the timeout of the request.

        Raises:
            RemotingError: the server refuses; code and remark are its own.
            ConnectionFailedError, RequestTimeoutError: the server does not answer.
        """
        with self.client.awaiting(address):
            return await self.client.call(address, request(code, header, body), seconds)

    async def request(
        self, address: str, code: RequestCode, header: Header | None = None, body: Body = b""
    ) -> Command:
        """Return the answer of one server, whatever its code.

        Raises:
            ConnectionFailedError, RequestTimeoutError: the server does not answer.
        """
        with self.client.awaiting(address):
            return await self.client.request(address, request(code, header, body), TIMEOUT)

    async def ask_names(self, code: RequestCode, header: Header | None = None) -> Command:
        """Return the answer of the first name server that answers.

        Raises:
            RemotingError: a name server refuses.
            MqlakeError: no name server answers.
        """
        failure: MqlakeError = MqlakeError('no name server is given: pass "host:port"')
        for address in self.name_servers:
            try:
                with _told_of_others(address, code):
                    return await self.ask(address, code, header)
            except (ConnectionFailedError, RequestTimeoutError) as error:
                failure = error
        raise failure

    # The addresses of brokers

    async def cluster_info(self) -> ClusterInfo:
        """Return all brokers that are registered."""
        answer = await self.ask_names(RequestCode.GET_BROKER_CLUSTER_INFO)
        return decode_answer(ClusterInfo, answer.body)

    async def brokers(
        self, cluster: str | None = None, broker: str | None = None
    ) -> list[MasterBroker]:
        """Return the masters of one cluster, or of all, by name.

        Args:
            broker: only this one, by name or address; an address need not be registered.

        Raises:
            MqlakeError: no broker of that name is registered.
        """
        if broker and ":" in broker:
            return [MasterBroker("", cluster or "", broker)]
        table = (await self.cluster_info()).broker_addr_table
        found = [
            MasterBroker(data.broker_name, data.cluster, data.broker_addrs[MASTER])
            for data in sorted(table.values(), key=_by_name)
            if MASTER in data.broker_addrs
            and cluster in (None, data.cluster)
            and broker in (None, data.broker_name)
        ]
        if not found:
            wanted = f"broker {broker}" if broker else f"cluster {cluster}" if cluster else "broker"
            raise MqlakeError(f"{';'.join(self.name_servers)}: no {wanted} is registered")
        return found

    async def broker(self, name: str) -> MasterBroker:
        """Return one master by name or address."""
        return (await self.brokers(broker=name))[0]

    async def route(self, topic: str) -> TopicRouteData:
        """Return the route of a topic.

        Raises:
            RemotingError: TOPIC_NOT_EXIST if no broker has it.
        """
        answer = await self.ask_names(RequestCode.GET_ROUTEINFO_BY_TOPIC, _route_of(topic))
        return decode_answer(TopicRouteData, answer.body)

    async def route_known(self, topic: str) -> TopicRouteData | None:
        """Return a topic's route from the first name server that knows it; None if none does."""
        for address in self.name_servers:
            try:
                code, header = RequestCode.GET_ROUTEINFO_BY_TOPIC, _route_of(topic)
                with _told_of_others(address, code):
                    answer = await self.ask(address, code, header, seconds=_ROUTE_TIMEOUT)
                self._note(address)
                return decode_answer(TopicRouteData, answer.body)
            except MqlakeError as error:
                self._note(address, error)
                _log.debug("name server %s: no route of %s: %s", address, topic, error)
        return None

    def _note(self, address: str, error: MqlakeError | None = None) -> None:
        """Note what a name server has answered; None for a route."""
        self.silent.pop(address, None)
        self.refusing.pop(address, None)
        if isinstance(error, (ConnectionFailedError, RequestTimeoutError)) or (
            error is not None and _serves_no_routes(error)
        ):
            self.silent[address] = error
        elif isinstance(error, RemotingError) and error.code == ResponseCode.NO_PERMISSION:
            what = "refuses" if self._is_signing else "refuses a request without a signature"
            self.refusing[address] = f"{address} {what}: {error}"

    async def brokers_of(self, topic: str) -> list[MasterBroker]:
        """Return the masters that have a topic, by name.

        Raises:
            RemotingError: TOPIC_NOT_EXIST if no broker has it.
        """
        route = await self.route(topic)
        return [
            MasterBroker(data.broker_name, data.cluster, data.broker_addrs[MASTER])
            for data in sorted(route.broker_datas, key=_by_name)
            if MASTER in data.broker_addrs
        ]

    async def broker_of(self, topic: str) -> MasterBroker:
        """Return the first master that has a topic.

        Raises:
            RemotingError: TOPIC_NOT_EXIST if no broker has it.
            MqlakeError: none of its brokers has a master now.
        """
        found = await self.brokers_of(topic)
        if not found:
            raise MqlakeError(f"topic {topic}: none of its brokers has a master now")
        return found[0]


def _addresses(name_servers: object) -> list[str]:
    if not isinstance(name_servers, str):
        raise ClientError(
            'name servers are one string, such as "names-1:9876;names-2:9876", not'
            f" {name_servers!r}"
        )
    return [part.strip() for part in name_servers.split(";") if part.strip()]


@contextmanager
def _told_of_others(address: str, code: RequestCode) -> Generator[None]:
    """Let the error of a server that is not a name server say so."""
    try:
        yield
    except RemotingError as error:
        if not _serves_no_routes(error) or code not in _OF_EACH:
            raise
        raise RemotingError(error.code, f"{address}: {NO_NAME_SERVER}") from None


def _serves_no_routes(error: MqlakeError) -> bool:
    return (
        isinstance(error, RemotingError) and error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    )


def _route_of(topic: str) -> GetRouteInfoHeader:
    return GetRouteInfoHeader(topic=topic, accept_standard_json_only=True)


def _by_name(data: BrokerData) -> str:
    return data.broker_name
