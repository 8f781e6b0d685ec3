"""What producers and consumers of one process share (upstream: `MQClientInstance`).

One `ClientInstance` for each client id: its connections, routes and heartbeats.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import NamedTuple

from mqlake.client.broker_requests import MemberRequests
from mqlake.client.cluster import MASTER, Cluster
from mqlake.client.errors import ClosedError
from mqlake.client.identity import DEFAULT_INSTANCE, client_id
from mqlake.client.members import ClientMembers, ConsumerMember, ProducerMember
from mqlake.client.routes import ClientRoutes
from mqlake.client.timers import Timer
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.heartbeat import Heartbeat, ProducerData
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.clients import UnregisterClientHeader
from mqlake.protocol.signature import Credentials
from mqlake.protocol.unique_keys import UniqueKeys
from mqlake.remoting.tls.options import ClientTls
from mqlake.storage.clock import SystemClock
from mqlake.storage.fork_guard import ForkGuard

ROUTE_INTERVAL = HEARTBEAT_INTERVAL = 30.0
"""Seconds."""
_TIMEOUT = 3.0

_log = logging.getLogger(__name__)


class _Sharers(NamedTuple):
    """Parameters in which members of one instance agree.

    Attributes:
        is_unique: whether no other process has the same client id.
    """

    name_servers: str
    instance: str
    unit: str | None
    is_unique: bool
    tls: ClientTls | None
    credentials: Credentials | None


class ClientInstance:
    """Connections, routes and heartbeats of one client id, on one event loop.

    Attributes:
        sharers: which producers and consumers may share it.
        client_id: the name under which brokers know it.
        members: the producers and consumers that use it.
        cluster: the connections.
        routes: the routes of topics.
        unique_keys: creates ids for messages.
        fork_guard: refuses work in a forked child, which has neither the loop nor the connections.
    """

    def __init__(self, sharers: _Sharers) -> None:
        self.sharers = sharers
        self.client_id = client_id(sharers.instance, sharers.unit, is_stable=not sharers.is_unique)
        self.members = ClientMembers()
        self.cluster = Cluster(
            sharers.name_servers,
            MemberRequests(self.members).handlers(),
            self._connected,
            sharers.tls,
            sharers.credentials,
        )
        self.routes = ClientRoutes(self.cluster)
        address = self.client_id.partition("@")[0]
        self.unique_keys = UniqueKeys(f"{address}:0", SystemClock())
        self.users = 0
        self.fork_guard = ForkGuard(self.client_id, kind="client", error=ClosedError)
        self._greeted: set[str] = set()
        self._greeting: set[str] = set()
        self._heartbeats = Timer(
            "heartbeats", self.heartbeat, first=1.0, every=HEARTBEAT_INTERVAL, least=0.1
        )
        refresh = Timer("routes", self._refresh, first=ROUTE_INTERVAL, every=ROUTE_INTERVAL)
        self._timers = refresh, self._heartbeats

    def start(self) -> None:
        """Start the background work: routes and heartbeats."""
        for timer in self._timers:
            timer.start()

    async def close(self) -> None:
        """Close all connections."""
        for timer in self._timers:
            await timer.stop()
        await self.cluster.close()

    # Members

    async def remove(self, member: ProducerMember | ConsumerMember) -> None:
        """Remove a member, and notify brokers, so that the others of its group need not wait."""
        is_consumer = self.members.remove_consumer(member)
        is_producer = self.members.remove_producer(member)
        if not is_producer and not is_consumer:
            return
        await self._tell_all_gone(
            member.group if is_producer else None, member.group if is_consumer else None
        )
        if is_producer and self.members.producers:
            await self._register_again()

    async def _register_again(self) -> None:
        """Have brokers send replies to this client again.

        A broker of RocketMQ forgets where a client's replies go when any of its producers leaves,
        and learns it only from one that it does not know (`ProducerManager.clientChannelTable`).
        """
        try:
            await self._tell_all_gone(min(self.members.producers), None)
        finally:
            await self.heartbeat()

    async def _tell_all_gone(self, producer_group: str | None, consumer_group: str | None) -> None:
        header = UnregisterClientHeader(
            client_id=self.client_id, producer_group=producer_group, consumer_group=consumer_group
        )
        asked = (self._tell_gone(address, header) for address in sorted(self._greeted))
        await asyncio.gather(*asked)

    async def _tell_gone(self, address: str, header: UnregisterClientHeader) -> None:
        try:
            await self.cluster.ask(address, RequestCode.UNREGISTER_CLIENT, header, seconds=_TIMEOUT)
        except MqlakeError as error:
            _log.debug("%s was not notified that a member left: %s", address, error)

    # Brokers

    async def heartbeat(self) -> None:
        """Send heartbeats to all brokers of the topics in use; to slaves only if there are
        consumers.
        """
        if not self.members.producers and not self.members.consumers:
            return
        body = self._heartbeat()
        addresses = self._broker_addresses()
        self._greeted &= addresses
        await asyncio.gather(*(self._greet(address, body) for address in sorted(addresses)))

    def _heartbeat(self) -> bytes:
        beat = Heartbeat(
            client_id=self.client_id,
            producer_data_set=[ProducerData(group) for group in sorted(self.members.producers)],
            consumer_data_set=[
                member.data() for _, member in sorted(self.members.consumers.items())
            ],
        )
        return encode_body(beat)

    async def introduce(self, addresses: Iterable[str], seconds: float) -> None:
        """Send heartbeats to those of some brokers that have not received one; a failure is
        logged.
        """
        unknown = [address for address in addresses if address not in self._greeted]
        if unknown:
            body = self._heartbeat()
            await asyncio.gather(*(self._greet(address, body, seconds) for address in unknown))

    def _connected(self, address: str) -> None:
        """Send a heartbeat to a broker: it forgets the members of a connection when that is
        lost.
        """
        if address in self._broker_addresses() and address not in self._greeting:
            self._heartbeats.wake()

    def _broker_addresses(self) -> set[str]:
        """Return the addresses that need heartbeats: slaves only if there are consumers."""
        return {
            address
            for brokers in self.routes.brokers().values()
            for broker_id, address in brokers.items()
            if broker_id == MASTER or self.members.consumers
        }

    async def _greet(self, address: str, body: bytes, seconds: float = _TIMEOUT) -> None:
        self._greeting.add(address)
        try:
            await self.cluster.ask(address, RequestCode.HEART_BEAT, body=body, seconds=seconds)
        except MqlakeError as error:
            # Log it once for each loss: routes contain a broker that is gone for a while.
            level = logging.WARNING if address in self._greeted else logging.DEBUG
            _log.log(level, "no heartbeat to %s: %s", address, error)
            self._greeted.discard(address)
        else:
            self._greeted.add(address)
        finally:
            self._greeting.discard(address)

    async def _refresh(self) -> None:
        wanted = {topic for member in self.members.consumers.values() for topic in member.topics}
        changed = await self.routes.refresh(wanted | self.routes.topics)
        if not changed:
            return
        for member in self.members.consumers.values():
            member.routes_changed(changed)
        await self.heartbeat()


_instances: dict[asyncio.AbstractEventLoop, list[ClientInstance]] = {}


def share_instance(
    name_servers: str,
    instance: str,
    unit: str | None,
    consumer_group: str | None = None,
    *,
    is_stable: bool = False,
    tls: ClientTls | None = None,
    credentials: Credentials | None = None,
) -> ClientInstance:
    """Return the instance that producers and consumers of this event loop share, and count one more
    user.

    `give_back` releases it.

    Args:
        instance: a name that tells clients of one machine apart; DEFAULT_INSTANCE for one that
            differs by process, and by consumers of one group in it.
        consumer_group: the group of the consumer that asks, if it is one.
        is_stable: the default instance, too, has the same client id after a restart.
        tls: how the connections use TLS; None for clear text.
        credentials: sign the requests; None for brokers without authentication.
    """
    for over in [loop for loop in _instances if loop.is_closed()]:
        del _instances[over]  # This includes instances that nobody has given back.
    instances = _instances.setdefault(asyncio.get_running_loop(), [])
    is_unique = instance == DEFAULT_INSTANCE and not is_stable
    sharers = _Sharers(name_servers, instance, unit, is_unique, tls, credentials)
    for found in instances:
        is_free = consumer_group is None or consumer_group not in found.members.consumers
        is_own = not found.fork_guard.is_child
        if is_own and found.sharers == sharers and (is_free or not is_unique):
            found.users += 1
            return found
    made = ClientInstance(sharers)
    made.users = 1
    made.start()
    instances.append(made)
    return made


async def give_back(instance: ClientInstance) -> None:
    """Release a shared instance; the last user closes it."""
    instance.users -= 1
    if instance.users == 0:
        _instances[asyncio.get_running_loop()].remove(instance)
        await instance.close()
