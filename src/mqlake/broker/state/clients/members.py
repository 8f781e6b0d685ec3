"""The clients of one group, by connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mqlake.protocol.bodies.heartbeat import BROADCASTING, ConsumerData, Subscription
from mqlake.remoting.connection import Peer

_OBJECT = 64
"""Bytes of a small object, including its place in a container."""


@dataclass(slots=True, eq=False)
class Client:
    """A client as it describes itself on one of its connections.

    Attributes:
        seen: when it last sent a heartbeat, milliseconds since 1970.
        user: who has signed it; None if nobody has.
    """

    peer: Peer
    client_id: str
    language: str
    version: int
    seen: int
    user: str | None = None


class GroupMembers:
    """The clients of one group of producers, or of consumers.

    A client has one entry for each connection.
    """

    def __init__(self, group: str) -> None:
        self.group = group
        self._clients: dict[Peer, Client] = {}
        self._ids: list[str] | None = None

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(self._clients.values())

    def __contains__(self, peer: object) -> bool:
        return peer in self._clients

    @property
    def client_ids(self) -> list[str]:
        """The ids of all clients, once each, in the order of their arrival."""
        if self._ids is None:
            self._ids = list(dict.fromkeys(client.client_id for client in self))
        return self._ids

    def at(self, peer: Peer) -> Client | None:
        """Return the client at the other side of a connection."""
        return self._clients.get(peer)

    def find(self, client_id: str) -> Client | None:
        """Return the client with an id."""
        return next((client for client in self if client.client_id == client_id), None)

    def update(self, client: Client) -> bool:
        """Note that a client is connected; return whether it is new."""
        old = self._clients.get(client.peer)
        self._clients[client.peer] = client
        if old is None or old.client_id != client.client_id:
            self._ids = None
        return old is None

    def remove(self, peer: Peer) -> bool:
        """Remove a connection; return whether it existed."""
        self._ids = None
        return self._clients.pop(peer, None) is not None


class ConsumerGroup(GroupMembers):
    """The consumers of one group, and what the group subscribes to.

    Attributes:
        subscriptions: by topic.
        consume_type, message_model, consume_from_where: those of the last heartbeat.
        fingerprint: of the last heartbeat, 0 if it had none.
        size: the approximate memory of the subscriptions, in bytes.
        owner: to whom that counts: the client that subscribed last.
    """

    def __init__(self, group: str) -> None:
        super().__init__(group)
        self.subscriptions: dict[str, Subscription] = {}
        self.fingerprint = self.size = 0
        self.owner = ""
        self.describe(ConsumerData())

    def describe(self, data: ConsumerData) -> None:
        """Note how the group consumes."""
        self.consume_type, self.message_model = data.consume_type, data.message_model
        self.consume_from_where = data.consume_from_where

    @property
    def is_broadcasting(self) -> bool:
        """Return whether each consumer gets all messages."""
        return self.message_model == BROADCASTING

    def subscribe(self, wanted: Iterable[Subscription], owner: str) -> bool:
        """Replace the subscriptions; return whether topics were added or removed.

        A subscription with a smaller version does not replace one with a greater.
        """
        old, new = self.subscriptions, dict[str, Subscription]()
        for one in wanted:
            known = new.get(one.topic) or old.get(one.topic)
            new[one.topic] = known if known and known.sub_version >= one.sub_version else one
        self.subscriptions, self.owner = new, owner
        self.size = sum(map(size_of, new.values()))
        return old.keys() != new.keys()


def size_of(subscription: Subscription) -> int:
    """Return the approximate memory of a subscription, in bytes."""
    texts = len(subscription.topic) + len(subscription.sub_string)
    tags = sum(_OBJECT + len(tag) for tag in subscription.tags_set)
    return 6 * _OBJECT + texts + tags + _OBJECT * len(subscription.code_set)
