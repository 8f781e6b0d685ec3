"""Which clients consume which lite topics (upstream: `LiteSubscriptionRegistryImpl`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from mqlake.remoting.connection import Peer
from mqlake.remoting.shares import Shares, owner_of
from mqlake.remoting.slices import Job

SILENCE: Final = 3 * 60 * 1000
"""Milliseconds after which the subscriptions of a client end that has not repeated them."""


_AT_ONCE: Final = 256
"""Clients that are examined between two looks at other requests."""


@dataclass(eq=False)
class LiteSubscription:
    """The lite topics that a client consumes.

    Attributes:
        queues: the names of their queues.
        updated: when the client has sent them, milliseconds.
    """

    client_id: str
    group: str
    topic: str
    peer: Peer
    owner: str
    updated: int
    queues: dict[str, None] = field(default_factory=dict[str, None])

    def consumes(self, group: str, topic: str) -> bool:
        """Return whether it is a member of a group, and consumes lite topics of a topic."""
        return (self.group, self.topic) == (group, topic)

    def heard(self, peer: Peer, now: int) -> None:
        """Note that the client has sent something."""
        self.peer, self.updated = peer, now


class LiteSubscriptions:
    """The subscriptions of all clients.

    Args:
        most: returns the maximum number of subscribed lite topics, of all clients together; it is
            also that of the clients.
        percent: returns the share of one address, in percent.
    """

    def __init__(self, most: Callable[[], int], percent: Callable[[], int]) -> None:
        self._most = most
        self._clients: dict[str, LiteSubscription] = {}
        self._subscribers: dict[str, dict[LiteSubscription, None]] = {}
        self._shares, self._clients_of = Shares(percent), Shares(percent)
        self.count = 0

    def get(self, client_id: str) -> LiteSubscription | None:
        """Return a client's subscriptions."""
        return self._clients.get(client_id)

    def of_group(self, group: str) -> list[LiteSubscription]:
        """Return the subscriptions of a group's clients."""
        return [each for each in self._clients.values() if each.group == group]

    def subscribers(self, queue: str, group: str | None = None) -> list[LiteSubscription]:
        """Return who consumes a lite topic.

        Args:
            group: only clients of this group, if not None.
        """
        found = self._subscribers.get(queue, ())
        return [each for each in found if group is None or each.group == group]

    def enter(
        self, client_id: str, group: str, topic: str, peer: Peer, now: int
    ) -> LiteSubscription:
        """Return a client's subscriptions; those of another group or topic end."""
        found = self._clients.get(client_id)
        if found is not None and not found.consumes(group, topic):
            self.remove_client(client_id)
            found = None
        if found is None:
            owner = owner_of(peer.address)
            found = LiteSubscription(client_id, group, topic, peer, owner, now)
            self._clients[client_id] = found
            self._clients_of.add(owner)
        found.heard(peer, now)
        return found

    def client_refusal(self, client_id: str, peer: Peer) -> str | None:
        """Return why a client may not enter; None if it may, or is known already."""
        if client_id in self._clients:
            return None
        owner, used = owner_of(peer.address), len(self._clients)
        return self._clients_of.refusal(owner, used, self._most(), "maxLiteSubscriptionCount")

    def refusal(self, client: LiteSubscription, more: int) -> str | None:
        """Return why a client may not subscribe to more lite topics; None if it may."""
        name = "maxLiteSubscriptionCount"
        return self._shares.refusal(client.owner, self.count, self._most(), name, more)

    def add(self, client: LiteSubscription, queue: str) -> bool:
        """Subscribe a client to a lite topic; return whether it was not subscribed."""
        if queue in client.queues:
            return False
        client.queues[queue] = None
        self._subscribers.setdefault(queue, {})[client] = None
        self._count(client, 1)
        return True

    def remove(self, client: LiteSubscription, queue: str) -> bool:
        """End a subscription; return whether it existed."""
        if queue not in client.queues:
            return False
        del client.queues[queue]
        others = self._subscribers[queue]
        del others[client]
        if not others:
            del self._subscribers[queue]
        self._count(client, -1)
        return True

    def _count(self, client: LiteSubscription, count: int) -> None:
        self.count += count
        self._shares.add(client.owner, count)

    def remove_client(self, client_id: str) -> LiteSubscription | None:
        """End all subscriptions of a client."""
        client = self._clients.pop(client_id, None)
        if client is not None:
            self._clients_of.add(client.owner, -1)
            for queue in list(client.queues):
                self.remove(client, queue)
        return client

    def remove_queue(self, queue: str) -> list[LiteSubscription]:
        """End all subscriptions to a lite topic; return whose they were."""
        found = self.subscribers(queue)
        for client in found:
            self.remove(client, queue)
        return found

    def silent(self, now: int) -> Job[list[str]]:
        """Return the clients that have not repeated their subscriptions for too long."""
        found: list[str] = []
        for number, client in enumerate(list(self._clients.values())):
            if client.updated < now - SILENCE:
                found.append(client.client_id)
            if number % _AT_ONCE == 0:
                yield
        return found

    def end(self, has_ended: Callable[[LiteSubscription], bool]) -> Job[list[str]]:
        """Remove some clients; return their ids."""
        gone: list[str] = []
        for client in list(self._clients.values()):
            if has_ended(client):
                self.remove_client(client.client_id)
                gone.append(client.client_id)
            yield
        return gone


def new_queues(client: LiteSubscription, queues: Iterable[str]) -> list[str]:
    """Return those of some queues that a client is not subscribed to, each once."""
    return [queue for queue in dict.fromkeys(queues) if queue not in client.queues]
