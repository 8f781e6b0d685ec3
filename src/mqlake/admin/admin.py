"""The connections of one administrator: to name servers, and to the brokers that they know.

Upstream: `DefaultMQAdminExt`.
"""

from __future__ import annotations

from typing import Self

from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.route import BrokerData, ClusterInfo, TopicRouteData
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Body, Command, request
from mqlake.protocol.header import Header
from mqlake.protocol.headers.namesrv import GetRouteInfoHeader
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError

MASTER = 0
TIMEOUT = 10.0
"""Seconds that a server has for an answer."""


class Broker:
    """A master: its name, its cluster, and where it listens."""

    def __init__(self, name: str, cluster: str, address: str) -> None:
        self.name, self.cluster, self.address = name, cluster, address


class Admin:
    """Asks name servers and brokers. `async with Admin(name_servers) as admin:` closes it."""

    def __init__(self, name_servers: str) -> None:
        """Prepare to ask.

        Args:
            name_servers: "host:port", several separated by `;`.
        """
        self.name_servers = [part.strip() for part in name_servers.split(";") if part.strip()]
        self._client = RemotingClient()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._client.close()

    async def ask(
        self, address: str, code: RequestCode, header: Header | None = None, body: Body = b""
    ) -> Command:
        """Return what one server answers.

        Raises:
            RemotingError: it refuses; code and remark are its own.
            ConnectionFailedError, RequestTimeoutError: it does not answer.
        """
        return await self._client.call(address, request(code, header, body), TIMEOUT)

    async def request(
        self, address: str, code: RequestCode, header: Header | None = None, body: Body = b""
    ) -> Command:
        """Return what one server answers, whatever the code of its answer.

        Raises:
            ConnectionFailedError, RequestTimeoutError: it does not answer.
        """
        return await self._client.request(address, request(code, header, body), TIMEOUT)

    async def ask_names(
        self, code: RequestCode, header: Header | None = None, body: Body = b""
    ) -> Command:
        """Return what the first name server answers that does.

        Raises:
            RemotingError: it refuses.
            MqlakeError: none answers.
        """
        failure: MqlakeError = MqlakeError("no name server is given")
        for address in self.name_servers:
            try:
                return await self.ask(address, code, header, body)
            except (ConnectionFailedError, RequestTimeoutError) as error:
                failure = error
        raise failure

    async def tell_names(
        self, code: RequestCode, header: Header, body: Body = b""
    ) -> list[Command]:
        """Return what every name server answers.

        Raises:
            MqlakeError: one refuses, or does not answer.
        """
        return [await self.ask(address, code, header, body) for address in self.name_servers]

    # Where brokers are

    async def cluster_info(self) -> ClusterInfo:
        """Return all brokers that are registered."""
        answer = await self.ask_names(RequestCode.GET_BROKER_CLUSTER_INFO)
        return decode_answer(ClusterInfo, answer.body)

    async def brokers(self, cluster: str | None = None, broker: str | None = None) -> list[Broker]:
        """Return the masters of one cluster, or of all, by name.

        Args:
            broker: one of them, by name or address; an address need not be registered.

        Raises:
            MqlakeError: there is none of that name.
        """
        if broker and ":" in broker:
            return [Broker("", cluster or "", broker)]
        table = (await self.cluster_info()).broker_addr_table
        found = [
            Broker(data.broker_name, data.cluster, data.broker_addrs[MASTER])
            for data in sorted(table.values(), key=_by_name)
            if MASTER in data.broker_addrs
            and cluster in (None, data.cluster)
            and broker in (None, data.broker_name)
        ]
        if not found:
            wanted = f"broker {broker}" if broker else f"cluster {cluster}" if cluster else "broker"
            raise MqlakeError(f"{';'.join(self.name_servers)}: no {wanted} is registered")
        return found

    async def broker(self, name: str) -> Broker:
        """Return one master by name or address."""
        return (await self.brokers(broker=name))[0]

    async def route(self, topic: str) -> TopicRouteData:
        """Return where a topic's queues are.

        Raises:
            RemotingError: TOPIC_NOT_EXIST where no broker has it.
        """
        header = GetRouteInfoHeader(topic=topic, accept_standard_json_only=True)
        answer = await self.ask_names(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        return decode_answer(TopicRouteData, answer.body)

    async def brokers_of(self, topic: str) -> list[Broker]:
        """Return the masters that have a topic, by name.

        Raises:
            RemotingError: TOPIC_NOT_EXIST where no broker has it.
        """
        route = await self.route(topic)
        return [
            Broker(data.broker_name, data.cluster, data.broker_addrs[MASTER])
            for data in sorted(route.broker_datas, key=_by_name)
            if MASTER in data.broker_addrs
        ]


def _by_name(data: BrokerData) -> str:
    return data.broker_name
