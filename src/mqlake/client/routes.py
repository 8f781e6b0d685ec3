"""The routes of topics: where their queues are (upstream: `TopicPublishInfo`,
`MQClientInstance`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from itertools import islice

import msgspec

from mqlake.client.cluster import MASTER, Cluster
from mqlake.client.errors import NoRouteError
from mqlake.formats.topic_names import AUTO_CREATE_TOPIC
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.route import QueueData, TopicRouteData
from mqlake.protocol.logic_queues.mapping import leaders

READ, WRITE = 4, 2
"""Bits of a topic's permission."""
MAX_QUEUES = 1 << 16
"""The maximum number of queues of one topic: a name server may claim two billion."""
DEFAULT_QUEUES = 4
"""Queues of a topic that a broker creates for a producer."""

_log = logging.getLogger(__name__)


class TopicRoute:
    """The queues of one topic.

    Attributes:
        addresses: for each broker name, "host:port" by broker id.
        read_queues: the queues that may be read, by broker name and queue id.
        write_queues: the queues that may be written to, of brokers that have a master.
        leaders: of a static topic, the name of the broker that leads each logic queue. Its queues
            are then the logic queues.
    """

    def __init__(self, topic: str, data: TopicRouteData, most_queues: int | None = None) -> None:
        self.topic = topic
        self.addresses = {broker.broker_name: broker.broker_addrs for broker in data.broker_datas}
        self._data = msgspec.json.encode(data)
        self.leaders: dict[MessageQueue, str] = {}
        if data.topic_queue_mapping_by_broker:
            found = leaders(data.topic_queue_mapping_by_broker, MAX_QUEUES)
            self.leaders = {MessageQueue(topic, *queue): name for queue, name in found.items()}
        rows = sorted(data.queue_datas, key=_by_broker)
        most = MAX_QUEUES if most_queues is None else most_queues
        readable = self.leaders or self._queues(rows, READ, most)
        self.read_queues = tuple(islice(readable, MAX_QUEUES))
        ordered = data.order_topic_conf
        writable = (
            _ordered_queues(topic, ordered)
            if isinstance(ordered, str) and ordered
            else self.leaders or self._queues(rows, WRITE, most)
        )
        self.write_queues = tuple(islice(writable, MAX_QUEUES))

    def is_same(self, other: TopicRoute | None) -> bool:
        """Return whether two routes are equal."""
        return other is not None and self._data == other._data

    def _queues(self, rows: list[QueueData], permission: int, most: int) -> Iterator[MessageQueue]:
        for row in rows:
            if not row.perm & permission:
                continue
            if permission == WRITE and MASTER not in self.addresses.get(row.broker_name, {}):
                continue
            count = row.read_queue_nums if permission == READ else row.write_queue_nums
            for queue_id in range(min(count, most)):
                yield MessageQueue(self.topic, row.broker_name, queue_id)


class ClientRoutes:
    """The routes of the topics that a client uses."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._routes: dict[str, TopicRoute] = {}
        self._creating: dict[str, dict[int, str]] = {}  # The topics of brokers that create topics.
        self._addresses: dict[str, dict[int, str]] = {}
        self._loading: dict[str, asyncio.Task[TopicRoute | None]] = {}

    @property
    def topics(self) -> set[str]:
        """Return the topics whose routes are known."""
        return set(self._routes)

    def known(self, topic: str) -> TopicRoute | None:
        """Return the route of a topic if it is known already."""
        return self._routes.get(topic)

    async def of(self, topic: str) -> TopicRoute:
        """Return the route of a topic; request it if it is not known.

        Raises:
            NoRouteError: no name server knows the topic, or none answers.
        """
        found = self._routes.get(topic) or await self.load(topic)
        if found is None:
            raise NoRouteError(f"topic {topic}: {self.why_unknown()}")
        return found

    def why_unknown(self) -> str:
        """Return why the last request for a route found none."""
        cluster, servers = self._cluster, self._cluster.name_servers
        silent, refusing = cluster.silent, cluster.refusing
        why = "; ".join([*map(str, silent.values()), *refusing.values()])
        if not servers:
            return 'no name server is given: pass "host:port"'
        if len(silent) == len(servers):
            return f"no name server answers: {why}"
        answered = ";".join(each for each in servers if each not in silent | refusing)
        if not answered:
            return f"no name server returns its route: {why}"
        unknown = f"no name server of {answered} knows the topic"
        return f"{unknown} ({why})" if why else unknown

    async def to_publish(self, topic: str) -> TopicRoute:
        """Return the route for messages to a topic; a broker may have to create the topic first.

        Raises:
            NoRouteError: no name server knows the topic, and no broker creates topics for
                producers.
        """
        try:
            return await self.of(topic)
        except NoRouteError:
            data = await self._cluster.route_known(AUTO_CREATE_TOPIC)
            if data is None:
                raise
        # This route is not kept: the next message finds the topic that the first one has created.
        route = TopicRoute(topic, data, most_queues=DEFAULT_QUEUES)
        self._creating.update(route.addresses)
        self._note_addresses()
        return route

    async def load(self, topic: str) -> TopicRoute | None:
        """Request the route of a topic; return it, or the known one if no name server answers."""
        task = self._loading.get(topic)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._load(topic))
            self._loading[topic] = task
            task.add_done_callback(lambda _: self._loading.pop(topic, None))
        return await asyncio.shield(task)

    async def refresh(self, topics: set[str]) -> set[str]:
        """Request the routes of topics again; return those that have changed."""
        before = {topic: self._routes.get(topic) for topic in topics}
        for topic in sorted(topics):
            await self.load(topic)
        return {
            topic
            for topic, old in before.items()
            if (new := self._routes.get(topic)) is not None and not new.is_same(old)
        }

    async def _load(self, topic: str) -> TopicRoute | None:
        data = await self._cluster.route_known(topic)
        if data is None:
            return self._routes.get(topic)
        route = TopicRoute(topic, data)
        if not route.is_same(self._routes.get(topic)):
            _log.debug("topic %s: its route is new, or has changed", topic)
            # The newest route comes last, so that its addresses win.
            self._routes.pop(topic, None)
            self._routes[topic] = route
            self._note_addresses()
        return self._routes[topic]

    # Addresses

    def brokers(self) -> dict[str, dict[int, str]]:
        """Return the brokers of all topics: for each name, "host:port" by broker id."""
        return self._addresses

    def master(self, broker_name: str) -> str | None:
        """Return the address of the master of a broker name, None if that is not known."""
        return self._addresses.get(broker_name, {}).get(MASTER)

    def broker_of(self, queue: MessageQueue) -> str:
        """Return the name of the broker that a queue is on; of a logic queue, its leader."""
        if queue.broker_name in self._addresses:
            return queue.broker_name
        route = self._routes.get(queue.topic)
        return route.leaders.get(queue, queue.broker_name) if route else queue.broker_name

    def master_of(self, queue: MessageQueue) -> str | None:
        """Return the address of the master of a queue's broker, None if that is not known."""
        return self.master(self.broker_of(queue))

    def to_read(self, queue: MessageQueue, broker_id: int) -> str | None:
        """Return where to read a queue: at the broker with this id, otherwise the next id,
        otherwise any.
        """
        found = self._addresses.get(self.broker_of(queue), {})
        for number in (broker_id, broker_id + 1):
            if number in found:
                return found[number]
        return next(iter(found.values()), None)

    def _note_addresses(self) -> None:
        self._addresses = dict(self._creating)
        for route in self._routes.values():
            self._addresses.update(route.addresses)


def _by_broker(row: QueueData) -> str:
    return row.broker_name


_MOST_DIGITS = 10
"""Of a number of queues: Python refuses to read thousands of digits."""


def _ordered_queues(topic: str, conf: str) -> Iterator[MessageQueue]:
    """Yield the queues of "name:queues;name:queues"; invalid parts are left out."""
    for part in conf.split(";"):
        name, _, count = part.partition(":")
        if name and count.isascii() and count.isdigit() and len(count) <= _MOST_DIGITS:
            for queue_id in range(min(int(count), MAX_QUEUES)):
                yield MessageQueue(topic, name, queue_id)
