"""The brokers of a cluster, which the service reaches over connections.

Upstream: `ClusterServiceManager`, `ClusterMessageService`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Self
from zlib import crc32

from mqlake.client.access import ClientAccess
from mqlake.client.cluster import Cluster
from mqlake.client.identity import DEFAULT_INSTANCE, client_id
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_WRITE
from mqlake.grpc.messages import Code
from mqlake.protocol.bodies.heartbeat import Heartbeat
from mqlake.protocol.bodies.route import TopicRouteData
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.namesrv import GetRouteInfoHeader
from mqlake.protocol.headers.transactions import CheckTransactionHeader
from mqlake.protocol.signature import Credentials
from mqlake.proxy.background import Background
from mqlake.proxy.brokers import cluster_producers, cluster_routes
from mqlake.proxy.brokers.cluster_metadata import ClusterMetadata
from mqlake.proxy.brokers.cluster_producers import ClusterProducers
from mqlake.proxy.brokers.cluster_routes import ClusterRoutes
from mqlake.proxy.brokers.cluster_users import ClusterUsers
from mqlake.proxy.brokers.port import UNSPECIFIED, Caller, Destination, Pushed
from mqlake.proxy.errors import StatusError
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.connection import Peer, Request, as_command
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError
from mqlake.remoting.shares import Shares, owner_of

_LATE: Final = 30.0
"""Seconds after which the answer to a poll that nobody waits for does not come any more."""
_MOST_GIVEN_UP: Final = 65_536
"""Polls for which nobody waits any more, and which brokers have yet to answer."""
_CONNECTIONS: Final = 4
"""Connections to each broker. A client always uses the same one."""


class CallerChecks(Enum):
    """What is checked of callers."""

    NOTHING = auto()
    USERS = auto()
    PERMISSIONS = auto()


async def _nobody(_command: Command, _client_id: str | None) -> Command | None:
    return None


class ClusterBrokers:
    """Asks the brokers that name servers know.

    `async with ClusterBrokers(name_servers) as brokers:` closes the connections.

    Args:
        name_servers: "host:port", several separated by `;`.
        access: how brokers and name servers are reached; their requests are signed as the proxy's.
        checked: whether, and how, callers are checked by the users of the cluster.
        share: percent of a limit for all that one address may use (`maxAddressShare`).
    """

    def __init__(
        self,
        name_servers: str,
        access: ClientAccess | None = None,
        checked: CallerChecks = CallerChecks.NOTHING,
        share: int = 50,
    ) -> None:
        access = access or ClientAccess()
        self._names = Cluster(name_servers, tls=access.tls, credentials=access.credentials)
        self._routes = ClusterRoutes(self._names)
        self._metadata = ClusterMetadata(self._names, self._routes)
        self._users: ClusterUsers | None = None
        if checked is not CallerChecks.NOTHING:
            is_authorizing = checked is CallerChecks.PERMISSIONS
            self._users = ClusterUsers(
                self._names, self._routes, share, is_authorizing=is_authorizing
            )
        handlers = {int(RequestCode.CHECK_TRANSACTION_STATE): self._checked}
        self._pool = [
            RemotingClient(
                handlers if number == 0 else None,
                opened=self._opened if number == 0 else None,
                tls=access.tls,
                credentials=access.credentials,
            )
            for number in range(_CONNECTIONS)
        ]
        name = client_id(DEFAULT_INSTANCE)
        self._producers = ClusterProducers(name, self._pool[0], self._routes)
        self._background = Background()
        self._polls: set[asyncio.Task[Command]] = set()
        self._given_up, self._shares = 0, Shares(lambda: share)
        self._pushed: Pushed = _nobody

    async def __aenter__(self) -> Self:
        background = self._background
        background.repeat("routes", self._routes.refresh, cluster_routes.REFRESH)
        background.repeat("heartbeats", self._producers.beat, cluster_producers.PERIOD)
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._background.stop(0)
        for task in self._polls:
            task.cancel()
        await asyncio.gather(*self._polls, return_exceptions=True)
        if self._users is not None:
            await self._users.close()
        await self._metadata.close()
        await self._routes.close()
        await asyncio.gather(*(client.close() for client in self._pool))
        await self._names.close()

    @property
    def is_authenticating(self) -> bool:
        """Return whether callers are checked. The proxy makes all requests in its own name."""
        return self._users is not None

    @property
    def refuses_unsigned(self) -> bool:
        """Return whether every call must be signed: it must if any is checked."""
        return self.is_authenticating

    @property
    def producer_groups(self) -> frozenset[str]:
        """Return the producer groups that the proxy is in."""
        return self._producers.groups

    @property
    def answer_at_once(self) -> bool:
        """Return False: the answers of brokers arrive over the network."""
        return False

    def serve_pushed(self, serve: Pushed) -> None:
        """Pass requests of brokers to clients from now on to a function."""
        self._pushed = serve

    async def credentials(
        self, name: str, address: str, *, is_doubted: bool = False
    ) -> Credentials | None:
        """Return the credentials of a user; None if there is no such user."""
        if self._users is None:
            return None
        return await self._users.credentials(name, address, is_doubted=is_doubted)

    def check(self, command: Command, caller: Caller) -> None:
        """Refuse a request that its sender may not make, without sending it."""
        if self._users is not None:
            self._users.check(command, caller)

    async def route(self, topic: str, caller: Caller) -> TopicRouteData:
        """Return where a topic's queues are."""
        header = GetRouteInfoHeader(topic=topic)
        self.check(request(RequestCode.GET_ROUTEINFO_BY_TOPIC, header), caller)
        return await self._routes.of(topic)

    async def destination(self, topic: str) -> Destination:
        """Return where messages of a topic can be sent."""
        try:
            route = await self._routes.of(topic)
        except RemotingError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            return Destination(UNSPECIFIED, ())
        masters = {data.broker_name for data in route.broker_datas if 0 in data.broker_addrs}
        queues = {
            data.broker_name: data.write_queue_nums
            for data in route.queue_datas
            if data.perm & PERM_WRITE and data.broker_name in masters
        }
        return Destination(await self.message_type(topic), tuple(sorted(queues.items())))

    async def message_type(self, topic: str) -> str:
        """Return the attribute `message.type` of a topic; "" if it has none."""
        return await self._metadata.message_type(topic)

    async def group(self, name: str, caller: Caller) -> SubscriptionGroup | None:
        """Return the settings of a consumer group; None if it does not exist."""
        fields = {"consumerGroup": name}
        self.check(request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, fields), caller)
        return await self._metadata.group(name)

    async def request(
        self, broker: str, command: Command | Request, caller: Caller, seconds: float
    ) -> Command:
        """Return the response of a broker, whatever its code."""
        address = await self._routes.master(broker)
        if address is None:
            reason = f"there is no broker {broker[:255]!r} with a master"
            raise StatusError(Code.BAD_REQUEST, reason)
        if self._users is not None:
            command = as_command(command)
            self._users.check(command, caller)
        if isinstance(command, Command):
            command.language, command.version = caller.language, caller.version
        client = self._pool[crc32(caller.client_id.encode()) % _CONNECTIONS]
        try:
            return await client.request(address, command, seconds)
        except ConnectionFailedError:
            self._routes.suspect()
            raise

    async def poll(
        self,
        broker: str,
        command: Command,
        caller: Caller,
        seconds: float,
        late: Callable[[Command], None],
    ) -> Command:
        """Return the response to a request that may wait for messages.

        The broker answers it even if this is cancelled: its connection is that of many clients.

        Raises:
            StatusError: TOO_MANY_REQUESTS: the client, or all, gave up too many polls before.
        """
        owner, name = owner_of(caller.address), "polls that were given up"
        refusal = self._shares.refusal(owner, self._given_up, _MOST_GIVEN_UP, name)
        if refusal is not None:
            raise StatusError(Code.TOO_MANY_REQUESTS, refusal)
        work = self.request(broker, command, caller, seconds + _LATE)
        task = asyncio.get_running_loop().create_task(work)
        self._polls.add(task)
        task.add_done_callback(self._polls.discard)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._give_up(task, owner, late)
            raise
        except TimeoutError:
            self._give_up(task, owner, late)
            reason = f"the broker has not answered request {command.code} within {seconds:g} s"
            raise RequestTimeoutError(reason) from None

    def _give_up(
        self, poll: asyncio.Task[Command], owner: str, late: Callable[[Command], None]
    ) -> None:
        """Count a poll for which nobody waits any more until the broker has answered it."""

        def ended(done: asyncio.Task[Command]) -> None:
            self._given_up -= 1
            self._shares.add(owner, -1)
            _pass_on(done, late)

        self._given_up += 1
        self._shares.add(owner)
        poll.add_done_callback(ended)

    async def register(self, caller: Caller, heartbeat: Heartbeat) -> None:
        """Let brokers ask the proxy about the transactions of a producer."""
        self.check(request(RequestCode.HEART_BEAT, body=encode_body(heartbeat)), caller)
        groups = {data.group_name for data in heartbeat.producer_data_set}
        new = self._producers.put(caller.client_id, groups)
        if new:
            # The client does not wait: a broker asks much later.
            self._background.start(self._producers.beat(new), "the first heartbeats of topics")

    def unregister(self, caller: Caller, heartbeat: Heartbeat) -> None:
        """Note that a client has left."""
        if heartbeat.producer_data_set:
            self._producers.put(caller.client_id, set())

    def _opened(self, _address: str) -> None:
        """Send heartbeats: a broker forgets a producer whose connection was lost."""
        if self._producers.groups:
            self._background.start(self._producers.beat(), "heartbeats after a reconnection")

    async def _checked(self, peer: Peer, command: Command) -> None:
        """Pass on the question of a broker how a transaction ended."""
        header = command.header(CheckTransactionHeader)
        if not header.broker_name:
            name = self._routes.name_of(peer.address)
            command.known_fields = {**command.fields, "bname": name or ""}
        await self._pushed(command, None)


def _pass_on(done: asyncio.Task[Command], late: Callable[[Command], None]) -> None:
    if not done.cancelled() and done.exception() is None:
        late(done.result())
