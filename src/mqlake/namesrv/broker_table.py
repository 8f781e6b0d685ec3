"""The registered brokers, and when each was last heard of (upstream: `RouteInfoManager`)."""

from __future__ import annotations

from collections.abc import Container
from typing import Final, NamedTuple

import msgspec

from mqlake.formats.config import DataVersion
from mqlake.protocol.bodies.route import BrokerData

MASTER_ID: Final = 0
HEARTBEAT_TIMEOUT: Final = 120_000
"""Milliseconds without a heartbeat after which a broker is removed, unless it sets another
value.
"""


class BrokerKey(NamedTuple):
    """One broker process: its cluster, and its "host:port"."""

    cluster: str
    address: str


class Place(NamedTuple):
    """A broker and the brokers of the same name."""

    key: BrokerKey
    name: str
    id: int


class LiveBroker(msgspec.Struct):
    """The state of a live broker; times are milliseconds.

    Attributes:
        registering: the topics of the parts of a registration so far, if more follow and topics
            that a broker no longer registers are removed.
    """

    last_heard: int
    timeout: int
    data_version: DataVersion
    connection: object
    ha_address: str
    filter_servers: list[str]
    registering: set[str] = msgspec.field(default_factory=set[str])


class BrokerTable:
    """Brokers by name and by cluster, and which of them are alive."""

    def __init__(self) -> None:
        self.by_name: dict[str, BrokerData] = {}
        self.clusters: dict[str, set[str]] = {}
        self.live: dict[BrokerKey, LiveBroker] = {}

    def ensure(self, cluster: str, name: str) -> BrokerData:
        """Return the brokers of a name; create the entry if it is missing."""
        self.clusters.setdefault(cluster, set()).add(name)
        found = self.by_name.get(name)
        if found is None:
            found = self.by_name[name] = BrokerData(cluster, name)
        return found

    def conflicts(self, place: Place, version: DataVersion) -> bool:
        """Return whether another broker of this name and id is alive and has a later state."""
        known = self.by_name[place.name].broker_addrs.get(place.id)
        if known is None or known == place.key.address:
            return False
        other = self.live.get(BrokerKey(place.key.cluster, known))
        return other is not None and other.data_version.state_version > version.state_version

    def heard(self, key: BrokerKey, now: int) -> None:
        """Note a heartbeat of a broker, if it is known."""
        live = self.live.get(key)
        if live is not None:
            live.last_heard = now

    def remove(self, place: Place) -> bool:
        """Remove a broker; return whether it was the last one of its name."""
        is_last = self.remove_place(place)
        self.forget_if_gone(place.key)
        return is_last

    def remove_place(self, place: Place) -> bool:
        """Remove a broker from the brokers of a name, and leave it alive; return whether it was the
        last one of the name.
        """
        key, name, _ = place
        data = self.by_name.get(name)
        if data is None:
            return False
        data.broker_addrs = {i: a for i, a in data.broker_addrs.items() if a != key.address}
        if data.broker_addrs:
            return False
        del self.by_name[name]
        for cluster, names in list(self.clusters.items()):
            names.discard(name)
            if not names:
                del self.clusters[cluster]
        return True

    def forget_if_gone(self, key: BrokerKey) -> None:
        """Forget that a broker is alive, unless it still has a name."""
        if not self.places_of(key):
            self.live.pop(key, None)

    def count(self, addresses: Container[str] | None = None) -> int:
        """Return the number of brokers, once for each name that a broker has registered.

        Args:
            addresses: count only those with one of these addresses.
        """
        registered = [data.broker_addrs for data in self.by_name.values()]
        if addresses is None:
            return sum(map(len, registered))
        return sum(address in addresses for each in registered for address in each.values())

    def has(self, place: Place) -> bool:
        """Return whether a broker has registered under a name, and is alive."""
        data = self.by_name.get(place.name)
        is_there = data is not None and place.key.address in data.broker_addrs.values()
        return is_there and place.key in self.live

    def places_of(self, key: BrokerKey) -> list[Place]:
        """Return the names and ids of a broker: it has several if it registers several names."""
        return [
            Place(key, name, broker_id)
            for name in self.clusters.get(key.cluster, ())
            for broker_id, address in self.by_name[name].broker_addrs.items()
            if address == key.address
        ]

    def silent(self, now: int) -> list[BrokerKey]:
        """Return the brokers that were silent for too long."""
        return [key for key, live in self.live.items() if live.last_heard + live.timeout < now]

    def on_connection(self, connection: object) -> list[BrokerKey]:
        """Return the brokers whose last registration came over a connection."""
        return [key for key, live in self.live.items() if live.connection is connection]
