"""Register this broker and its topics with name servers.

Upstream: `BrokerController.registerBrokerAll`, `BrokerOuterAPI`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.registration.acting_members import members_of
from mqlake.broker.state.registration.named_masters import NamedMasters
from mqlake.broker.state.registration.topic_registrations import TopicRegistrations
from mqlake.broker.state.static_topics import StaticTopics
from mqlake.broker.state.topics import BrokerTopics
from mqlake.client.cluster import Cluster
from mqlake.errors import MqlakeError
from mqlake.formats.config import DataVersion
from mqlake.protocol.bodies.route import TopicRouteData
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.namesrv import (
    BrokerHeartbeatHeader,
    RegisterBrokerResponseHeader,
    UnregisterBrokerHeader,
)
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import ConnectTimeoutError, RequestTimeoutError
from mqlake.remoting.slices import Job, Slices
from mqlake.replication.replicas import Replicas
from mqlake.store.live_settings import Current
from mqlake.tls.settings import client_tls

_SHORTEST, _LONGEST = 10.0, 60.0
_AGAIN = 1.0
"""Seconds after which a failed registration is retried."""
_WITHOUT_MASTER = 3.0
"""Seconds after which a slave asks again if its master is not registered."""
_FIRST = 10.0
"""Maximum seconds that a start waits for registrations."""
_CHANGE = 3.0
"""Maximum seconds that the answer to a change of topics does. Clients wait longer for an answer."""
_LAST = 0.5
"""Maximum seconds that a stop waits for the name servers."""

_SLOW = ConnectTimeoutError, RequestTimeoutError
"""Failures of a name server that may only be slow: the registration may succeed soon."""

_AT_ONCE = 100
"""Maximum topics that are registered concurrently, each by a request of its own."""

_log = logging.getLogger(__name__)


@dataclass
class _RegistrationState:
    """What one name server knows.

    Attributes:
        stale: set if it must be notified of changes.
        tried: the number of changes that it knows, or failed to take.
        peer: the connection; None before the first one.
        version: of the topics that it has; None if unknown.
        changed: the topics that it does not know; None for all.
        whole_at: the loop time at which all topics are registered again.
        takes_single: whether it serves REGISTER_TOPIC_IN_NAMESRV: RocketMQ 4 does not.
    """

    stale: asyncio.Event = field(default_factory=asyncio.Event)
    tried: int = -1
    peer: Peer | None = None
    version: DataVersion | None = None
    changed: dict[str, None] | None = None
    whole_at: float = 0.0
    takes_single: bool = True

    def note(self, topic: str | None) -> None:
        """Note that a topic has changed, or anything (None)."""
        if topic is None:
            self.changed = self.version = None
        elif self.changed is not None:
            self.changed[topic] = None
        self.stale.set()


class _OrderedTopics(msgspec.Struct):
    """The answer of a name server: the topics whose messages are ordered over all brokers."""

    table: dict[str, str] = {}


class Registration:
    """Keeps a broker registered with its name servers, each independently.

    It registers every `registerNameServerPeriod`, at once when topics change or the connection is
    lost, and every second while it fails. A registration contains all topics, in several parts if
    they are many; if a broker with many topics changes a few, it contains only these.

    Attributes:
        on_stop: called, and awaited, before the broker unregisters.
    """

    def __init__(
        self,
        settings: Current[BrokerSettings],
        topics: BrokerTopics,
        static_topics: StaticTopics,
        replicas: Replicas,
        slices: Slices,
    ) -> None:
        self._settings, self._topics, self._slices = settings, topics, slices
        self._replicas, self._loop = replicas, asyncio.get_running_loop()
        self._registrations = TopicRegistrations(settings, topics, static_topics, replicas)
        now = settings.now
        self._cluster = Cluster(
            now.namesrv_addr, tls=client_tls(now), credentials=now.inner_credentials
        )
        self._client = self._cluster.client
        self._name_servers = {
            address: _RegistrationState() for address in self._cluster.name_servers
        }
        self._masters = NamedMasters(settings, replicas, self._cluster.name_servers)
        self._tasks: list[asyncio.Task[None]] = []
        self._changes, self._is_stopped = 0, False
        self._progress = asyncio.Condition()
        self.on_stop: list[Callable[[], Awaitable[None]]] = []
        settings.on_change(self.changed, "broker_permission", "register_name_server_period")
        settings.on_change(self.changed, "broker_role", "broker_id")

    async def start(self) -> None:
        """Register; return as `told` does, but wait longer."""
        self._tasks = [asyncio.create_task(self._keep(address)) for address in self._name_servers]
        await self._all_tried(_FIRST)

    def changed(self, topic: str | None = None) -> None:
        """Register a topic that has changed; None: whatever name servers know of this broker."""
        self._changes += 1
        for name_server in self._name_servers.values():
            name_server.note(topic)

    async def told(self) -> None:
        """Return once each name server knows of the changes so far, or refuses the connection.

        One that is only slow, or does not respond, is waited for, but no longer than clients wait
        for an answer.
        """
        await self._all_tried(_CHANGE)

    async def _all_tried(self, seconds: float) -> None:
        changes = self._changes

        def are_tried() -> bool:
            servers = self._name_servers.values()
            return self._is_stopped or all(each.tried >= changes for each in servers)

        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._progress:
                await self._progress.wait_for(are_tried)

    async def route(self, topic: str) -> TopicRouteData | None:
        """Return a topic's route from the first name server that knows it."""
        return await self._cluster.route_known(topic)

    async def members(self) -> dict[int, str]:
        """Return the addresses of this broker's name by id, as all name servers know them.

        Raises:
            MqlakeError: no name server answers.
        """
        return await members_of(self._cluster, self._settings.now)

    def send_heartbeat(self) -> None:
        """Send a heartbeat to the name servers with which the broker is registered."""
        settings = self._settings.now
        header = BrokerHeartbeatHeader(
            cluster_name=settings.broker_cluster_name,
            broker_addr=settings.broker_address,
            broker_name=settings.broker_name,
            broker_id=settings.broker_id,
        )
        for name_server in self._name_servers.values():
            peer = name_server.peer
            if peer is not None and not peer.is_closed:
                peer.oneway(request(RequestCode.BROKER_HEARTBEAT, header))

    async def stop(self) -> None:
        """Unregister from the name servers that answer, and forget them."""
        for function in self.on_stop:
            await function()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        async with self._progress:
            self._is_stopped = True
            self._progress.notify_all()
        tasks = [asyncio.create_task(self._unregister(each)) for each in self._name_servers]
        if tasks:
            await asyncio.wait(tasks, timeout=_LAST)
        await self._cluster.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, address: str) -> None:
        name_server, logged = self._name_servers[address], None
        while True:
            name_server.stale.clear()
            changes = self._changes
            is_slow = False
            try:
                await self._register(address)
            except Exception as error:  # noqa: BLE001 (a broker without this task is found no more)
                failure, pause = f"{type(error).__name__}: {error}", _AGAIN
                is_slow = isinstance(error, _SLOW)
                if isinstance(error, MqlakeError):
                    failure = str(error)
                elif failure != logged:
                    _log.error("name server %s: registration failed", address, exc_info=error)
                name_server.note(None)
                name_server.stale.clear()  # The connection that was lost just now has set it, too.
                self._masters.failed(address)
            else:
                failure, pause = "", name_server.whole_at - self._loop.time()
            if failure != logged:
                logged = failure
                if failure:
                    _log.warning("name server %s: not registered: %s", address, failure)
                else:
                    _log.info("name server %s: registered", address)
            if not is_slow:
                async with self._progress:
                    name_server.tried = changes
                    self._progress.notify_all()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await name_server.stale.wait()

    def _period(self) -> float:
        """Return the seconds until the next registration of all topics."""
        settings = self._settings.now
        if settings.is_slave and not self._replicas.master_address:
            return _WITHOUT_MASTER
        return min(max(settings.register_name_server_period / 1000, _SHORTEST), _LONGEST)

    async def _register(self, address: str) -> None:
        name_server = self._name_servers[address]
        peer = await self._client.connect(address)
        if name_server.peer is not peer:
            # A restarted name server knows nothing: it is notified at once, not after the interval.
            name_server.peer, name_server.takes_single = peer, True
            name_server.changed = name_server.version = None
            peer.on_close(lambda _: name_server.stale.set())
        changed, name_server.changed = name_server.changed, {}
        is_due = self._loop.time() >= name_server.whole_at
        if changed and not is_due and self._are_few(changed):
            await self._register_changed(address, name_server, changed)
        else:
            await self._register_all(address, name_server)

    def _are_few(self, changed: Collection[str]) -> bool:
        """Return whether it is less work to register these topics alone."""
        few = self._settings.now.split_registration_size
        return len(changed) < few < len(self._topics)

    async def _register_all(self, address: str, name_server: _RegistrationState) -> None:
        version, names = self._topics.version, list(self._topics)
        is_known = name_server.version == version
        timeout = self._settings.now.register_broker_timeout_mills / 1000
        first, is_last = 0, False
        while not is_last:
            encoding = self._registrations.part(names, first, version, is_known=is_known)
            command, first, is_last = await self._slices.finish(encoding)
            answer = await self._client.call(address, command, timeout)
            await self._take_answer(address, answer)
        name_server.whole_at = self._loop.time() + self._period()
        if name_server.changed is not None:
            name_server.version = version

    async def _register_changed(
        self, address: str, name_server: _RegistrationState, changed: Collection[str]
    ) -> None:
        settings, version = self._settings.now, self._topics.version
        if settings.enable_single_topic_register and name_server.takes_single:
            try:
                await self._register_singles(address, list(changed))
            except RemotingError as error:
                if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                    raise
                name_server.takes_single = False
            else:
                return
        command = await self._slices.finish(self._registrations.changes(changed, version))
        timeout = settings.register_broker_timeout_mills / 1000
        await self._take_answer(address, await self._client.call(address, command, timeout))
        if name_server.changed is not None:
            name_server.version = version

    async def _register_singles(self, address: str, topics: list[str]) -> None:
        timeout = self._settings.now.register_broker_timeout_mills / 1000
        for first in range(0, len(topics), _AT_ONCE):
            some = map(self._registrations.single, topics[first : first + _AT_ONCE])
            calls = [self._client.call(address, each, timeout) for each in some if each is not None]
            await asyncio.gather(*calls)

    async def _take_answer(self, address: str, answer: Command) -> None:
        settings = self._settings.now
        if settings.enable_controller_mode and settings.is_slave:
            return  # the controller says who the master is
        if settings.is_slave:
            self._masters.note(address, answer.header(RegisterBrokerResponseHeader))
            return  # The master's table says which topics are ordered.
        if answer.body:
            table = decode_body(_OrderedTopics, answer.body).table
            await self._slices.finish(self._take_order(table))

    def _take_order(self, table: dict[str, str]) -> Job[None]:
        """Note which topics are ordered (upstream: `updateOrderTopicConfig`)."""
        for name in list(self._topics):
            topic = self._topics.get(name)
            if topic is not None and topic.order != (name in table):
                self._topics.put(msgspec.structs.replace(topic, order=name in table))
            yield

    async def _unregister(self, address: str) -> None:
        settings = self._settings.now
        header = UnregisterBrokerHeader(
            broker_name=settings.broker_name,
            broker_addr=settings.broker_address,
            cluster_name=settings.broker_cluster_name,
            broker_id=settings.broker_id,
        )
        try:
            await self._client.call(
                address, request(RequestCode.UNREGISTER_BROKER, header), timeout=_LAST
            )
        except MqlakeError as error:
            _log.info("name server %s: not unregistered: %s", address, error)
