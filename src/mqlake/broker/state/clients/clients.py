"""The groups of producers and consumers with connected clients.

Upstream: `ConsumerManager`, `ProducerManager`, `DefaultConsumerIdsChangeListener`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import count
from typing import TypeVar

from mqlake.broker.repeating import Repeating
from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.clients.members import Client, ConsumerGroup, GroupMembers, size_of
from mqlake.broker.state.clients.notices import Notices
from mqlake.broker.state.groups import Groups
from mqlake.protocol.bodies.heartbeat import ConsumerData
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.connection import Peer
from mqlake.remoting.shares import Shares, owner_of
from mqlake.remoting.slices import Job, Slices
from mqlake.store.live_settings import Current

M = TypeVar("M", bound=GroupMembers)

_LOOK_INTERVAL = 10.0
"""Seconds between checks for clients that are gone without notice."""

_log = logging.getLogger(__name__)


class Clients:
    """The clients that are connected to a broker. A client leaves with its connection.

    Args:
        groups: tells which groups want to know of members that come and go.
        now: returns milliseconds.
        group_left: called with the name of a group of consumers that has lost its last client.

    Attributes:
        producers, consumers: groups that have a client, by name.
        consumer_changes: counts the groups of consumers that come and go, and the changes of what
            they subscribe to, and of how they consume.
    """

    def __init__(
        self,
        settings: Current[BrokerSettings],
        groups: Groups,
        slices: Slices,
        repeating: Repeating,
        now: Callable[[], int],
        group_left: Callable[[str], None],
    ) -> None:
        self.producers: dict[str, GroupMembers] = {}
        self.consumers: dict[str, ConsumerGroup] = {}
        self._settings, self._groups, self._slices = settings, groups, slices
        self._shares = Shares(lambda: settings.now.max_address_share)
        self._sizes = Shares(lambda: settings.now.max_address_share)
        self._now, self._group_left = now, group_left
        self._notices = Notices(slices)
        self._turns = count()
        # The groups of each connection's clients.
        self._groups_of: dict[Peer, tuple[set[str], set[str]]] = {}
        # Producers by id, then by group and connection.
        self._producers_with: dict[str, dict[tuple[str, Peer], Client]] = {}
        self._count = self._subscribed = self.consumer_changes = 0
        repeating.every(_LOOK_INTERVAL, self._look)

    # Look up

    def consumer(self, group: str, client_id: str) -> Client | None:
        """Return the consumer of a group that has an id."""
        members = self.consumers.get(group)
        return members.find(client_id) if members else None

    def producer(self, group: str, may: Callable[[Client], bool] = lambda _: True) -> Client | None:
        """Return a producer of a group, a different one each time.

        Args:
            may: returns whether it may be this one.
        """
        members = self.producers.get(group)
        if not members:
            return None
        clients = [client for client in members if not client.peer.is_closed and may(client)]
        return clients[next(self._turns) % len(clients)] if clients else None

    def producer_with_id(self, client_id: str) -> Client | None:
        """Return the producer of any group that has an id."""
        return next(iter(self._producers_with.get(client_id, {}).values()), None)

    def groups_of(self, topic: str) -> Job[set[str]]:
        """Return the groups with a consumer that subscribes to a topic."""
        found: set[str] = set()
        for name, group in list(self.consumers.items()):
            if topic in group.subscriptions:
                found.add(name)
            yield
        return found

    # Come

    def client(
        self, peer: Peer, client_id: str, language: str, version: int, user: str | None = None
    ) -> Client:
        """Return a client that is connected now.

        Args:
            user: who has signed its heartbeat; None if nobody has.
        """
        return Client(peer, client_id, language, version, self._now(), user)

    def add_producer(self, group: str, client: Client) -> None:
        """Note a producer's heartbeat.

        Raises:
            RemotingError: there are too many clients.
        """
        members = self.producers.get(group)
        old = members.at(client.peer) if members else None
        if old is None:
            self._check_room(client)
        if members is None:
            members = self.producers[group] = GroupMembers(group)
        members.update(client)
        if old is not None:
            self._forget_id(group, old)
        self._producers_with.setdefault(client.client_id, {})[group, client.peer] = client
        if old is None:
            self._joined(client.peer)[0].add(group)
            _log.info(
                "producer %s of group %s connected: %s",
                client.client_id,
                group,
                client.peer.address,
            )

    def add_consumer(
        self, data: ConsumerData, client: Client, *, keep: bool = False, fingerprint: int = 0
    ) -> None:
        """Note a consumer's heartbeat, and notify the others of its group if something changed.

        Args:
            keep: whether its subscriptions are those of the previous heartbeat.
            fingerprint: of the heartbeat, 0 if it has none.

        Raises:
            RemotingError: there are too many clients, or subscriptions.
        """
        name = data.group_name
        group = self.consumers.get(name)
        if group is None or client.peer not in group:
            self._check_room(client)
        if not keep:
            self._check_subscriptions(data, group, client.peer)
        is_new = group is None
        if group is None:
            group = self.consumers[name] = ConsumerGroup(name)
        before = group.message_model, group.subscriptions
        group.describe(data)
        changed = group.update(client)
        if changed:
            self._joined(client.peer)[1].add(name)
            _log.info(
                "consumer %s of group %s connected: %s", client.client_id, name, client.peer.address
            )
        if not keep and self._subscribe(group, data, owner_of(client.peer.address)):
            changed = True
        if is_new or (group.message_model, group.subscriptions) != before:
            self.consumer_changes += 1
        group.fingerprint = fingerprint
        if changed:
            self._tell(group)

    def _subscribe(self, group: ConsumerGroup, data: ConsumerData, owner: str) -> bool:
        """Replace a group's subscriptions; return whether topics were added or removed."""
        self._count_size(group, -1)
        changed = group.subscribe(data.subscription_data_set, owner)
        self._count_size(group, 1)
        if changed:
            _log.info("group %s subscribes to %d topics", group.group, len(group.subscriptions))
        return changed

    def _count_size(self, group: ConsumerGroup, sign: int) -> None:
        self._subscribed += sign * group.size
        self._sizes.add(group.owner, sign * group.size)

    def _check_room(self, client: Client) -> None:
        """Refuse a client that would exceed the limit."""
        settings = self._settings.now
        most, groups = settings.max_groups_per_heartbeat, self._groups_of.get(client.peer)
        if groups is not None and len(groups[0]) + len(groups[1]) >= most:
            reason = (
                f"client {client.client_id} is in {most} groups already (maxGroupsPerHeartbeat)"
            )
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        most, owner = settings.max_client_nums, owner_of(client.peer.address)
        refusal = self._shares.refusal(owner, self._count, most, "maxClientNums")
        if refusal is not None:
            reason = f"client {client.client_id} is refused: {refusal}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)

    def _check_subscriptions(
        self, data: ConsumerData, group: ConsumerGroup | None, peer: Peer
    ) -> None:
        """Refuse subscriptions that are too many, or need too much memory together with all
        others.
        """
        settings, name = self._settings.now, data.group_name
        count, most = len(data.subscription_data_set), settings.max_subscriptions_per_group
        if count > most:
            reason = (
                f"group {name} is refused: it subscribes to {count} topics, and the maximum "
                f"is {most} (maxSubscriptionsPerGroup)"
            )
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        size = sum(map(size_of, data.subscription_data_set)) - (group.size if group else 0)
        most, owner = settings.max_subscriptions_size, owner_of(peer.address)
        refusal = self._sizes.refusal(owner, self._subscribed, most, "maxSubscriptionsSize", size)
        if size > 0 and refusal is not None:
            reason = f"group {name} is refused: of the bytes of all subscriptions, {refusal}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)

    def _joined(self, peer: Peer) -> tuple[set[str], set[str]]:
        self._count += 1
        self._shares.add(owner_of(peer.address))
        groups = self._groups_of.get(peer)
        if groups is None:
            groups = self._groups_of[peer] = (set(), set())
            peer.on_close(self._drop)
        return groups

    # Go

    def remove_producer(self, group: str, peer: Peer) -> None:
        """Remove a producer that has unregistered."""
        members = self.producers.get(group)
        client = members.at(peer) if members else None
        if client is not None and self._leave(self.producers, group, peer):
            self._forget_id(group, client)
            if peer in self._groups_of:
                self._groups_of[peer][0].discard(group)

    def remove_consumer(self, group: str, peer: Peer) -> None:
        """Remove a consumer that has unregistered, and notify the others of its group."""
        members = self.consumers.get(group)
        if members is None or not self._leave(self.consumers, group, peer):
            return
        if peer in self._groups_of:
            self._groups_of[peer][1].discard(group)
        if members:
            self._tell(members)
        else:
            self.consumer_changes += 1
            self._count_size(members, -1)
            self._group_left(group)

    def _leave(self, table: dict[str, M], group: str, peer: Peer) -> bool:
        members = table.get(group)
        if members is None or not members.remove(peer):
            return False
        self._count -= 1
        self._shares.add(owner_of(peer.address), -1)
        if not len(members):
            del table[group]
        _log.info("a client of group %s left: %s", group, peer.address)
        return True

    def _forget_id(self, group: str, producer: Client) -> None:
        same = self._producers_with[producer.client_id]
        del same[group, producer.peer]
        if not same:
            del self._producers_with[producer.client_id]

    def _drop(self, peer: Peer) -> None:
        groups = self._groups_of.pop(peer, None)
        if groups is not None:
            self._slices.start(self._drop_from(peer, *groups))

    def _drop_from(self, peer: Peer, producers: set[str], consumers: set[str]) -> Job[None]:
        for group in producers:
            self.remove_producer(group, peer)
            yield
        for group in consumers:
            self.remove_consumer(group, peer)
            yield

    def _look(self) -> None:
        self._slices.start(self.expire())

    def expire(self) -> Job[None]:
        """Close the connections of clients that have sent no heartbeat for too long."""
        oldest = self._now() - self._settings.now.channel_expired_timeout
        tables: Iterable[GroupMembers] = [*self.producers.values(), *self.consumers.values()]
        for members in tables:
            for client in list(members):
                if client.seen < oldest and not client.peer.is_closed:
                    self._drop(client.peer)
                    client.peer.close(
                        f"client {client.client_id} has sent no heartbeat for too long"
                    )
                yield

    # Tell

    def _tell(self, group: ConsumerGroup) -> None:
        """Have the consumers of a group rebalance."""
        settings = self._groups.get(group.group)
        is_wanted = settings is None or settings.notify_consumer_ids_changed_enable
        if (
            is_wanted
            and self._settings.now.notify_consumer_ids_changed_enable
            and not group.is_broadcasting
        ):
            self._notices.tell(group)
