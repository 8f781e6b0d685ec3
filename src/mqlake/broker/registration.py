"""Register this broker and its topics with name servers.

Upstream: `BrokerController.registerBrokerAll`, `BrokerOuterAPI`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from mqlake.broker.acting.members import members_of
from mqlake.broker.named_masters import NamedMasters
from mqlake.broker.replicas import Replicas
from mqlake.broker.settings import BrokerSettings
from mqlake.broker.static_topics.mappings import StaticTopics
from mqlake.broker.topics import READ_WRITE, Topics
from mqlake.client.cluster import Cluster
from mqlake.errors import MqlakeError
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.register import TopicConfigs, body_crc
from mqlake.protocol.bodies.route import TopicQueueMappingInfo, TopicRouteData
from mqlake.protocol.body import decode_body, encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import ONEWAY, Command, request
from mqlake.protocol.headers.namesrv import (
    BrokerHeartbeatHeader,
    RegisterBrokerHeader,
    RegisterBrokerResponseHeader,
    UnregisterBrokerHeader,
)
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import RequestTimeoutError
from mqlake.remoting.slices import Job, Slices
from mqlake.store.live_settings import Current

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

_log = logging.getLogger(__name__)


class _KVTable(msgspec.Struct):
    """The answer of a name server: the topics whose messages are ordered over all brokers."""

    table: dict[str, str] = {}


class Registration:
    """Keeps a broker registered with its name servers, each independently.

    It registers every `registerNameServerPeriod`, at once when topics change or the connection is
    lost, and every second while it fails.

    Attributes:
        on_stop: called, and awaited, before the broker unregisters.
    """

    def __init__(
        self,
        settings: Current[BrokerSettings],
        topics: Topics,
        static_topics: StaticTopics,
        replicas: Replicas,
        slices: Slices,
    ) -> None:
        self._settings, self._topics, self._slices = settings, topics, slices
        self._static_topics, self._replicas = static_topics, replicas
        self._cluster = Cluster(settings.now.namesrv_addr)
        self._client = self._cluster.client
        self._stale = {address: asyncio.Event() for address in self._cluster.name_servers}
        self._peers: dict[str, Peer] = {}
        self._masters = NamedMasters(settings, replicas, self._cluster.name_servers)
        self._tasks: list[asyncio.Task[None]] = []
        # The number of changes, and how many of them each name server knows, or failed to take.
        self._changes, self._is_stopped = 0, False
        self._tried = dict.fromkeys(self._stale, -1)
        self._progress = asyncio.Condition()
        self.on_stop: list[Callable[[], Awaitable[None]]] = []
        topics.on_change = self.changed
        settings.on_change(self.changed, "broker_permission", "register_name_server_period")
        settings.on_change(self.changed, "broker_role", "broker_id")

    async def start(self) -> None:
        """Register; return as `told` does, but wait longer."""
        self._tasks = [asyncio.create_task(self._keep(address)) for address in self._stale]
        await self._all_tried(_FIRST)

    def changed(self) -> None:
        """Register again, because topics, or what name servers know about them, have changed."""
        self._changes += 1
        for stale in self._stale.values():
            stale.set()

    async def told(self) -> None:
        """Return once each name server knows of the changes so far, or cannot be reached.

        One that is only slow is waited for, but no longer than clients wait for an answer.
        """
        await self._all_tried(_CHANGE)

    async def _all_tried(self, seconds: float) -> None:
        changes = self._changes

        def are_tried() -> bool:
            return self._is_stopped or all(tried >= changes for tried in self._tried.values())

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
        for peer in self._peers.values():
            if not peer.is_closed:
                heartbeat = request(RequestCode.BROKER_HEARTBEAT, header)
                heartbeat.flag |= ONEWAY
                peer.send(heartbeat)

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
        tasks = [asyncio.create_task(self._unregister(address)) for address in self._stale]
        if tasks:
            await asyncio.wait(tasks, timeout=_LAST)
        await self._cluster.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, address: str) -> None:
        logged: str | None = None
        while True:
            self._stale[address].clear()
            changes = self._changes
            is_slow = False
            try:
                await self._register(address)
            except Exception as error:  # noqa: BLE001 (a broker without this task is found no more)
                failure, pause = f"{type(error).__name__}: {error}", _AGAIN
                is_slow = isinstance(error, RequestTimeoutError)
                if isinstance(error, MqlakeError):
                    failure = str(error)
                elif failure != logged:
                    _log.error("name server %s: registration failed", address, exc_info=error)
                self._stale[address].clear()  # Set by the connection that was lost just now.
                self._masters.failed(address)
            else:
                failure, pause = "", self._period()
            if failure != logged:
                logged = failure
                if failure:
                    _log.warning("name server %s: not registered: %s", address, failure)
                else:
                    _log.info("name server %s: registered", address)
            if not is_slow:
                async with self._progress:
                    self._tried[address] = changes
                    self._progress.notify_all()
            try:
                async with asyncio.timeout(pause):
                    await self._stale[address].wait()
            except TimeoutError:
                pass

    def _period(self) -> float:
        """Return the seconds until the next registration, if nothing changes before."""
        settings = self._settings.now
        if settings.is_slave and not self._replicas.master_address:
            return _WITHOUT_MASTER
        return min(max(settings.register_name_server_period / 1000, _SHORTEST), _LONGEST)

    async def _register(self, address: str) -> None:
        timeout = self._settings.now.register_broker_timeout_mills / 1000
        peer = await self._client.connect(address)
        if self._peers.get(address) is not peer:
            # A restarted name server knows nothing: it is notified at once, not after the interval.
            self._peers[address] = peer
            peer.on_close(lambda _: self._stale[address].set())
        registration = await self._slices.finish(self._registration())
        answer = await self._client.call(address, registration, timeout)
        if self._settings.now.enable_controller_mode and self._settings.now.is_slave:
            return  # the controller says who the master is
        if self._settings.now.is_slave:
            self._masters.note(address, answer.header(RegisterBrokerResponseHeader))
            return  # The master's table says which topics are ordered.
        if answer.body:
            table = decode_body(_KVTable, answer.body).table
            await self._slices.finish(self._take_order(table))

    def _registration(self) -> Job[Command]:
        settings, version = self._settings.now, self._topics.version
        texts: list[bytes] = []
        for name in list(self._topics):
            topic = self._topics.get(name)
            if topic is not None:
                texts.append(encode_body(name) + b":" + encode_body(self._allowed(topic)))
            yield
        # Encoded like `RegisterBody`, whose topics are by far the largest part.
        mappings: dict[str, TopicQueueMappingInfo] = {}
        for name in list(self._static_topics):
            if (info := self._static_topics.registered(name)) is not None:
                mappings[name] = info
            yield
        wrapper = encode_body(
            TopicConfigs(
                data_version=version,
                topic_queue_mapping_info_map=mappings,
                mapping_data_version=self._static_topics.version,
            )
        )
        table = b'{"topicConfigTable":{' + b",".join(texts) + b"}"
        yield
        empty = b'{"topicConfigTable":{}'
        assert wrapper.startswith(empty)
        body = b"".join(
            (
                b'{"topicConfigSerializeWrapper":',
                table,
                wrapper[len(empty) :],
                b',"filterServerList":[]}',
            )
        )
        yield
        acts = settings.has_acting_master
        header = RegisterBrokerHeader(
            broker_name=settings.broker_name,
            broker_addr=settings.broker_address,
            cluster_name=settings.broker_cluster_name,
            # Not None: Java's name server refuses that. A slave connects to no empty address.
            ha_server_addr=self._replicas.ha_address,
            broker_id=settings.broker_id,
            heartbeat_timeout_millis=settings.broker_not_active_timeout_millis if acts else None,
            enable_acting_master=acts,
            body_crc32=body_crc(body),
        )
        return request(RequestCode.REGISTER_BROKER, header, body)

    def _allowed(self, topic: Topic) -> Topic:
        """Return a topic as clients may use it: with no more than `brokerPermission`."""
        allowed = self._settings.now.broker_permission
        if allowed & READ_WRITE == READ_WRITE:
            return topic
        return msgspec.structs.replace(topic, perm=topic.perm & allowed)

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
