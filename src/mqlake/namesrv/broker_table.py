"""The registered brokers, and when each was last heard of (upstream: `RouteInfoManager`)."""

from __future__ import annotations

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
        key, name, _ = place
        data = self.by_name.get(name)
        if data is not None:
            data.broker_addrs = {i: a for i, a in data.broker_addrs.items() if a != key.address}
        is_last = data is not None and not data.broker_addrs
        if is_last:
            del self.by_name[name]
            for cluster, names in list(self.clusters.items()):
                names.discard(name)
                if not names:
                    del self.clusters[cluster]
        if self.place_of(key) is None:
            self.live.pop(key, None)
        return is_last

    def place_of(self, key: BrokerKey) -> Place | None:
        """Return name and id of a broker, None if it is not known."""
        for name in self.clusters.get(key.cluster, ()):
            for broker_id, address in self.by_name[name].broker_addrs.items():
                if address == key.address:
                    return Place(key, name, broker_id)
        return None

    def silent(self, now: int) -> list[BrokerKey]:
        """Return the brokers that were silent for too long."""
        return [key for key, live in self.live.items() if live.last_heard + live.timeout < now]

    def on_connection(self, connection: object) -> list[BrokerKey]:
        """Return the brokers whose last registration came over a connection."""
        return [key for key, live in self.live.items() if live.connection is connection]
