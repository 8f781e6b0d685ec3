"""The groups of producers and consumers that have clients connected.

Upstream: `ConsumerManager`, `ProducerManager`, `DefaultConsumerIdsChangeListener`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from mqlake.broker.clients.members import Client, ConsumerGroup, Members
from mqlake.broker.clients.notices import Notices
from mqlake.remoting.bodies.heartbeat import ConsumerData
from mqlake.remoting.connection import Peer

if TYPE_CHECKING:
    from mqlake.broker.parts import Parts

M = TypeVar("M", bound=Members)

_LOOK_INTERVAL = 10.0
"""Seconds between looks for clients that are gone without a word."""

_log = logging.getLogger(__name__)


class Clients:
    """Who is connected to a broker. A client leaves with its connection.

    Attributes:
        producers, consumers: groups that have a client, by name.
    """

    def __init__(self, parts: Parts) -> None:
        self.producers: dict[str, Members] = {}
        self.consumers: dict[str, ConsumerGroup] = {}
        self._parts = parts
        self._now = parts.store.core.clock.milliseconds
        self._notices = Notices()
        self._turns = count()
        # The groups that a connection has clients in.
        self._groups_of: dict[Peer, tuple[set[str], set[str]]] = {}
        parts.repeating.every(_LOOK_INTERVAL, self.expire)

    # Look up

    def consumer(self, group: str, client_id: str) -> Client | None:
        """Return the consumer of a group that has an id."""
        members = self.consumers.get(group)
        return members.find(client_id) if members else None

    def producer(self, group: str) -> Client | None:
        """Return a producer of a group, another one each time."""
        members = self.producers.get(group)
        if not members:
            return None
        clients = [client for client in members if not client.peer.is_closed]
        return clients[next(self._turns) % len(clients)] if clients else None

    def producer_with_id(self, client_id: str) -> Client | None:
        """Return the producer, of whatever group, that has an id."""
        found = (members.find(client_id) for members in self.producers.values())
        return next((client for client in found if client), None)

    def groups_of(self, topic: str) -> set[str]:
        """Return the groups with a consumer that subscribes to a topic."""
        return {name for name, group in self.consumers.items() if topic in group.subscriptions}

    # Come

    def client(self, peer: Peer, client_id: str, language: str, version: int) -> Client:
        """Return a client that is there now."""
        return Client(peer, client_id, language, version, self._now())

    def add_producer(self, group: str, client: Client) -> None:
        """Note a producer's heartbeat."""
        members = self.producers.get(group)
        if members is None:
            members = self.producers[group] = Members(group)
        if members.update(client):
            self._joined(client.peer)[0].add(group)
            _log.info(
                "producer %s of group %s came: %s", client.client_id, group, client.peer.address
            )

    def add_consumer(self, data: ConsumerData, client: Client, *, keep: bool = False) -> None:
        """Note a consumer's heartbeat, and tell the others of its group if something changed.

        Args:
            keep: its subscriptions are those of the last time.
        """
        name = data.group_name
        group = self.consumers.get(name)
        if group is None:
            group = self.consumers[name] = ConsumerGroup(name)
        group.describe(data)
        changed = group.update(client)
        if changed:
            self._joined(client.peer)[1].add(name)
            _log.info(
                "consumer %s of group %s came: %s", client.client_id, name, client.peer.address
            )
        if not keep and group.subscribe(data.subscription_data_set):
            changed = True
            _log.info(
                "group %s subscribes to %s", name, ", ".join(group.subscriptions) or "nothing"
            )
        if changed:
            self._tell(group)

    def _joined(self, peer: Peer) -> tuple[set[str], set[str]]:
        groups = self._groups_of.get(peer)
        if groups is None:
            groups = self._groups_of[peer] = (set(), set())
            peer.on_close(self._drop)
        return groups

    # Go

    def remove_producer(self, group: str, peer: Peer) -> None:
        """Forget a producer that has said that it goes."""
        self._leave(self.producers, group, peer)

    def remove_consumer(self, group: str, peer: Peer) -> None:
        """Forget a consumer that has said that it goes, and tell the others of its group."""
        members = self.consumers.get(group)
        if self._leave(self.consumers, group, peer) and members:
            self._tell(members)

    def _leave(self, table: dict[str, M], group: str, peer: Peer) -> bool:
        members = table.get(group)
        if members is None or not members.remove(peer):
            return False
        if not len(members):
            del table[group]
        _log.info("a client of group %s left: %s", group, peer.address)
        return True

    def _drop(self, peer: Peer) -> None:
        producers, consumers = self._groups_of.pop(peer, (set(), set()))
        for group in producers:
            self.remove_producer(group, peer)
        for group in consumers:
            self.remove_consumer(group, peer)

    def expire(self) -> None:
        """Close the connections of clients that have sent no heartbeat for too long."""
        oldest = self._now() - self._parts.settings.channel_expired_timeout
        tables: Iterable[Members] = [*self.producers.values(), *self.consumers.values()]
        for client in [client for members in tables for client in members if client.seen < oldest]:
            self._drop(client.peer)
            client.peer.close(f"client {client.client_id} has sent no heartbeat for too long")

    # Tell

    def _tell(self, group: ConsumerGroup) -> None:
        """Let the consumers of a group share its queues anew."""
        settings = self._parts.groups.get(group.group)
        is_wanted = settings is None or settings.notify_consumer_ids_changed_enable
        if (
            is_wanted
            and self._parts.settings.notify_consumer_ids_changed_enable
            and not group.is_broadcasting
        ):
            self._notices.tell(group)
