"""The clients of one group, by connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mqlake.remoting.bodies.heartbeat import BROADCASTING, ConsumerData, Subscription
from mqlake.remoting.connection import Peer


@dataclass(slots=True, eq=False)
class Client:
    """A client as one connection of it says it is.

    Attributes:
        seen: when it last sent a heartbeat, milliseconds since 1970.
    """

    peer: Peer
    client_id: str
    language: str
    version: int
    seen: int


class Members:
    """The clients of one group of producers, or of consumers. One has an entry a connection."""

    def __init__(self, group: str) -> None:
        self.group = group
        self._clients: dict[Peer, Client] = {}

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(self._clients.values())

    def __contains__(self, peer: object) -> bool:
        return peer in self._clients

    @property
    def client_ids(self) -> list[str]:
        """The ids of all clients, once each, in the order in which they came."""
        return list(dict.fromkeys(client.client_id for client in self))

    def at(self, peer: Peer) -> Client | None:
        """Return the client at the other side of a connection."""
        return self._clients.get(peer)

    def find(self, client_id: str) -> Client | None:
        """Return the client with an id."""
        return next((client for client in self if client.client_id == client_id), None)

    def update(self, client: Client) -> bool:
        """Note that a client is there; say whether it is new."""
        is_new = client.peer not in self._clients
        self._clients[client.peer] = client
        return is_new

    def remove(self, peer: Peer) -> bool:
        """Forget a connection; say whether it was there."""
        return self._clients.pop(peer, None) is not None


class ConsumerGroup(Members):
    """The consumers of one group, and what the group subscribes to.

    Attributes:
        subscriptions: by topic.
        consume_type, message_model, consume_from_where: as the last heartbeat said.
        fingerprint: of the last heartbeat, 0 where it had none.
    """

    def __init__(self, group: str) -> None:
        super().__init__(group)
        self.subscriptions: dict[str, Subscription] = {}
        self.fingerprint = 0
        self.describe(ConsumerData())

    def describe(self, data: ConsumerData) -> None:
        """Note how the group consumes."""
        self.consume_type, self.message_model = data.consume_type, data.message_model
        self.consume_from_where = data.consume_from_where

    @property
    def is_broadcasting(self) -> bool:
        """Whether each consumer gets all messages."""
        return self.message_model == BROADCASTING

    def subscribe(self, wanted: Iterable[Subscription]) -> bool:
        """Let these be the subscriptions; say whether topics came or went.

        A subscription with a smaller version does not replace one with a greater.
        """
        old, new = self.subscriptions, dict[str, Subscription]()
        for one in wanted:
            known = new.get(one.topic) or old.get(one.topic)
            new[one.topic] = known if known and known.sub_version >= one.sub_version else one
        self.subscriptions = new
        return old.keys() != new.keys()
