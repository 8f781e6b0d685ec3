"""Brokers and topics together: register, unregister, expire, look up.

Upstream: `RouteInfoManager`. Does no I/O; callers pass the time, in milliseconds.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET

from mqlake.formats.config import DataVersion
from mqlake.namesrv.acting import (
    SmallestIdChange,
    after_registration,
    after_removal,
    let_slave_act,
)
from mqlake.namesrv.broker_table import (
    HEARTBEAT_TIMEOUT,
    MASTER_ID,
    BrokerKey,
    BrokerTable,
    LiveBroker,
    Place,
)
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.namesrv.topic_table import TopicQueueTable, mapping_size
from mqlake.protocol.bodies.register import RegisterBody
from mqlake.protocol.bodies.route import BrokerData, QueueData, TopicRouteData
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.namesrv import RegistrationPart
from mqlake.remoting.connection import Peer
from mqlake.remoting.shares import Use, owner_of
from mqlake.remoting.slices import Job

T = TypeVar("T")
_log: Final = logging.getLogger("mqlake.namesrv")

LONGEST_TOPIC: Final = 255
_LONGEST_TEXTS: Final = 16_384
"""Maximum characters of all names and addresses in a registration."""
_SHOWN: Final = 80

_MEMBER_GROUP_TOPIC: Final = "rmq_sys_SYNC_BROKER_MEMBER_"
"""Prefix of the topics by which slaves find each other; they never see an acting master."""


def owner_of_connection(connection: object) -> str:
    """Return to whose share a connection's brokers count."""
    return owner_of(connection.address) if isinstance(connection, Peer) else "unknown"


class RegistrationContent(NamedTuple):
    """The content of a registration. `acting_master`: None from releases before 5.

    Attributes:
        part: which of the broker's topics it contains; None for all.
    """

    place: Place
    ha_address: str
    zone: str | None
    timeout: int | None
    acting_master: bool | None
    body: RegisterBody
    connection: object
    part: RegistrationPart | None = None


class Master(NamedTuple):
    """The address of a slave's master; "" without a master."""

    address: str = ""
    ha_address: str = ""


class RouteTable:
    """Everything that a name server knows about brokers and topics.

    Attributes:
        on_smallest_id: called with a broker name when its smallest id has changed, if one of its
            slaves may act for the master.
    """

    def __init__(self) -> None:
        self.on_smallest_id: Callable[[str, SmallestIdChange], object] = lambda _name, _change: None
        self.brokers = BrokerTable()
        self.topics = TopicQueueTable()
        self._changes: deque[object] = deque()

    def _alone(self, change: Job[T]) -> Job[T]:
        """Run a job that changes routes after the earlier ones have ended.

        Otherwise the job for a broker's last connection could remove the broker although it has
        registered again.
        """
        ticket = object()
        self._changes.append(ticket)
        try:
            while self._changes[0] is not ticket:
                yield
            return (yield from change)
        finally:
            self._changes.remove(ticket)

    def register(
        self, new: RegistrationContent, settings: NamesrvSettings, now: int
    ) -> Job[Master | None]:
        """Register a broker, or its changes; return its master.

        Returns:
            None if an unknown broker registered only a single topic.

        Raises:
            RemotingError: there would be too many brokers or topics, or a name is too long.
        """
        return self._alone(self._register(new, settings, now))

    def _register(
        self, new: RegistrationContent, settings: NamesrvSettings, now: int
    ) -> Job[Master | None]:
        place, topics = new.place, new.body.topic_config_serialize_wrapper
        yield from self._check(new, settings)
        key, name, broker_id = place
        data = self.brokers.ensure(key.cluster, name)
        data.enable_acting_master = bool(new.acting_master)
        data.zone_name = UNSET if new.zone is None else new.zone
        smallest = min(data.broker_addrs, default=MASTER_ID)
        # A slave that became the master has one address under two ids for a moment.
        data.broker_addrs = {
            i: a for i, a in data.broker_addrs.items() if a != key.address or i == broker_id
        }
        if self.brokers.conflicts(place, topics.data_version):
            _log.warning("%s: another broker %s with id %d is alive", key.address, name, broker_id)
            self.brokers.forget_if_gone(key)
            return Master()
        is_first = broker_id not in data.broker_addrs
        if is_first and len(topics.topic_config_table) == 1:
            self._forget_if_empty(place)
            return None
        data.broker_addrs[broker_id] = key.address
        is_prime_slave = new.acting_master is not None and broker_id == min(data.broker_addrs)
        known = self.brokers.live.get(key)
        registering = known.registering if known else set[str]()
        if broker_id == MASTER_ID or is_prime_slave:
            yield from self._take_topics(new, settings, registering, is_first=is_first)
        if key not in self.brokers.live:
            _log.info(
                "broker %s registered: %s, id %d, %s", name, key.address, broker_id, key.cluster
            )
        self.brokers.live[key] = LiveBroker(
            last_heard=now,
            timeout=HEARTBEAT_TIMEOUT if new.timeout is None else new.timeout,
            data_version=topics.data_version,
            connection=new.connection,
            ha_address=new.ha_address,
            filter_servers=new.body.filter_server_list,
            registering=registering,
        )
        if broker_id < smallest and data.enable_acting_master and len(data.broker_addrs) > 1:
            self.on_smallest_id(name, after_registration(data, new.ha_address))
        return self._master(key, data) if broker_id != MASTER_ID else Master()

    def _check(self, new: RegistrationContent, settings: NamesrvSettings) -> Job[None]:
        """Refuse a registration that exceeds the limits, before any of it is applied."""
        key, name, _ = new.place
        if not self.brokers.has(new.place):
            # A broker that registers many names counts once for each.
            use = Use(self.brokers.count(), settings.max_broker_nums, "maxBrokerNums")
            if not use.is_free():
                owner = owner_of_connection(new.connection)
                own = self.brokers.count(self._addresses_of(owner))
                self._check_use(f"broker {name}", use, owner, own, settings)
        texts = (name, *key, new.ha_address, new.zone or "", *new.body.filter_server_list)
        if sum(map(len, texts)) > _LONGEST_TEXTS:
            raise RemotingError(
                ResponseCode.SYSTEM_ERROR,
                f"broker {name[:_SHOWN]} is not registered: its names and addresses exceed "
                f"{_LONGEST_TEXTS} characters",
            )
        topics = new.body.topic_config_serialize_wrapper
        more = 0
        for topic in topics.topic_config_table.values():
            _check_length(topic.topic_name, name)
            more += not self.topics.has(topic.topic_name, name)
            yield
        for topic_name, mapping in topics.topic_queue_mapping_info_map.items():
            _check_length(topic_name, name)
            more += mapping_size(mapping) if mapping.bname == name else 0
            yield
        self.check_room(f"{more} topics of broker {name}", more, new.connection, settings)

    def check_room(
        self, what: str, more: int, connection: object, settings: NamesrvSettings
    ) -> None:
        """Refuse topics of a connection that would exceed the limit.

        Raises:
            RemotingError: there would be more than `maxTopicNums`, or more than the share of one
                address.
        """
        use = Use(len(self.topics), settings.max_topic_nums, "maxTopicNums")
        if more <= 0 or use.is_free(more):
            return
        owner = owner_of_connection(connection)
        addresses = self._addresses_of(owner)
        brokers = self.brokers.by_name.items()
        names = [name for name, data in brokers if addresses & set(data.broker_addrs.values())]
        own = sum(map(self.topics.count_of, names)) + self.topics.added_by(owner)
        self._check_use(what, use, owner, own, settings, more)

    def _addresses_of(self, owner: str) -> set[str]:
        """Return those of the brokers whose last registration came from a client's address."""
        live = self.brokers.live.items()
        return {key.address for key, each in live if owner_of_connection(each.connection) == owner}

    def _check_use(
        self, what: str, use: Use, owner: str, own: int, settings: NamesrvSettings, more: int = 1
    ) -> None:
        refusal = use.refusal(owner, own, settings.max_address_share, more)
        if refusal is not None:
            reason = f"{what[:_SHOWN]} is not registered: {refusal}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)

    def unregister(self, place: Place) -> Job[None]:
        """Remove a broker, and its topics if it was the last one of its name."""
        return self._alone(self._unregister(place))

    def _unregister(self, place: Place) -> Job[None]:
        yield from self._remove(place)
        self.brokers.forget_if_gone(place.key)

    def _remove(self, place: Place) -> Job[None]:
        name, address = place.name, place.key.address
        _log.info("broker %s is removed: %s", name, address)
        data = self.brokers.by_name.get(name)
        smallest = min(data.broker_addrs, default=MASTER_ID) if data else MASTER_ID
        yield
        if self.brokers.remove_place(place):
            yield from self.topics.forget_broker(name)
            return
        if data is None or not data.enable_acting_master:
            return
        if MASTER_ID not in data.broker_addrs:
            yield from self.topics.wipe_write(name)
        if min(data.broker_addrs) != smallest:
            self.on_smallest_id(name, after_removal(data, address))

    def lose(self, connection: object) -> Job[None]:
        """Remove the brokers of a closed connection."""
        return self._alone(self._lose(connection))

    def _lose(self, connection: object) -> Job[None]:
        yield from self._forget(self.brokers.on_connection(connection), connection)

    def expire(self, now: int) -> Job[list[LiveBroker]]:
        """Remove the brokers that were silent for too long; return them."""
        return self._alone(self._expire(now))

    def _expire(self, now: int) -> Job[list[LiveBroker]]:
        keys = self.brokers.silent(now)
        expired = [self.brokers.live[key] for key in keys]
        for key, live in zip(keys, expired, strict=True):
            _log.warning("broker %s was silent for more than %d ms", key.address, live.timeout)
        yield from self._forget(keys)
        return expired

    def has_changed(self, key: BrokerKey, version: DataVersion) -> bool:
        """Return whether a broker's topics may differ from those that it registered."""
        live = self.brokers.live.get(key)
        return live is None or live.data_version != version

    def register_topic(
        self, topic: str, queues: list[QueueData], connection: object = None
    ) -> None:
        """Register one topic of known brokers; do nothing for unknown ones.

        Args:
            connection: that of the client to whose share it counts.
        """
        if all(data.broker_name in self.brokers.by_name for data in queues):
            for data in queues:
                self.topics.put(topic, data, owner_of_connection(connection))

    def find(self, topic: str, settings: NamesrvSettings) -> TopicRouteData | None:
        """Return a topic's route, or None if the topic is unknown."""
        queues = self.topics.queues.get(topic, {})
        brokers = [
            msgspec.structs.replace(self.brokers.by_name[name])
            for name in queues
            if name in self.brokers.by_name
        ]
        if not brokers:
            return None
        route = TopicRouteData(list(queues.values()), brokers)
        route.topic_queue_mapping_by_broker = self.topics.mappings.get(topic, UNSET)
        route.filter_server_table = {
            address: live.filter_servers
            for data in brokers
            for address in data.broker_addrs.values()
            if (live := self.brokers.live.get(BrokerKey(data.cluster, address)))
            and live.filter_servers
        }
        if settings.support_acting_master and not topic.startswith(_MEMBER_GROUP_TOPIC):
            for data in brokers:
                let_slave_act(data, queues[data.broker_name])
        return route

    def _take_topics(
        self,
        new: RegistrationContent,
        settings: NamesrvSettings,
        registering: set[str],
        *,
        is_first: bool,
    ) -> Job[None]:
        name, topics = new.place.name, new.body.topic_config_serialize_wrapper
        table, mappings = topics.topic_config_table, topics.topic_queue_mapping_info_map
        if settings.delete_topic_with_broker_registration:
            yield from self._forget_others(new, registering)
        is_changed = is_first or self.has_changed(new.place.key, topics.data_version)
        read_only = bool(new.acting_master) and new.place.id != MASTER_ID
        for topic in table.values():
            if is_changed or not self.topics.has(topic.topic_name, name):
                self.topics.register(name, topic, read_only=read_only)
            yield
        if is_changed:
            for topic, mapping in mappings.items():
                if mapping.bname == name:  # Others would count to brokers that did not register.
                    self.topics.put_mapping(topic, mapping)
                yield

    def _forget_others(self, new: RegistrationContent, registering: set[str]) -> Job[None]:
        """Remove the topics that a broker no longer registers, once it has registered all."""
        topics = new.body.topic_config_serialize_wrapper
        if new.part is RegistrationPart.CHANGES:
            return
        if new.part in (None, RegistrationPart.FIRST):
            registering.clear()
        registering.update(topics.topic_config_table)
        if new.part in (None, RegistrationPart.LAST):
            if not topics.topic_queue_mapping_info_map:  # As RocketMQ.
                yield from self.topics.keep_only(new.place.name, registering)
            registering.clear()

    def _master(self, key: BrokerKey, data: BrokerData) -> Master:
        address = data.broker_addrs.get(MASTER_ID, "")
        live = self.brokers.live.get(BrokerKey(key.cluster, address))
        return Master(address, live.ha_address) if live else Master()

    def _forget(self, keys: list[BrokerKey], connection: object = None) -> Job[None]:
        """Remove brokers, except those that have registered again over another connection."""
        for key in keys:
            live = self.brokers.live.get(key)
            if connection is not None and (live is None or live.connection is not connection):
                continue
            for place in self.brokers.places_of(key):
                yield from self._remove(place)
            self.brokers.live.pop(key, None)

    def _forget_if_empty(self, place: Place) -> None:
        if not self.brokers.by_name[place.name].broker_addrs:
            self.brokers.remove(place)


def _check_length(topic: str, broker_name: str) -> None:
    if len(topic) > LONGEST_TOPIC:
        raise RemotingError(
            ResponseCode.SYSTEM_ERROR,
            f"broker {broker_name} is not registered: the name of topic "
            f"{topic[:_SHOWN]}… exceeds {LONGEST_TOPIC} characters",
        )
