"""Send messages in the thread that publishes them."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import NamedTuple

from mqlake.client.access import ClientAccess
from mqlake.client.cluster import MASTER
from mqlake.client.identity import local_address
from mqlake.client.message import Message
from mqlake.client.producer.outgoing import Compression, Outgoings
from mqlake.client.producer.producer import MAX_MESSAGE_SIZE
from mqlake.client.routes import TopicRoute
from mqlake.errors import MqlakeError
from mqlake.kombu.blocking_connection import BlockingConnection
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.unique_keys import UniqueKeys
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.storage.clock import SystemClock

GROUP = "mqlake_kombu"
_TIMEOUT = 3.0
_ROUTE_AGE = 30.0
"""Seconds for which a route is considered valid, as in other clients."""
_MOST_ROUTES = 1024
_STORED = frozenset(
    (
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
    )
)

_log = logging.getLogger(__name__)


class _KnownRoute(NamedTuple):
    """The route of a topic, and when it was requested."""

    route: TopicRoute
    since: float


class DirectSender:
    """Tries to store a message with one request over a connection of its own.

    It retries nothing: its caller has a producer for that.

    Args:
        route_of: returns the route of a topic, which is created if missing.
        access: how its brokers are reached.
    """

    def __init__(self, route_of: Callable[[str], TopicRoute], access: ClientAccess) -> None:
        self._access = access
        clock = SystemClock()
        keys = UniqueKeys(f"{local_address()}:0", clock)
        self._outgoings = Outgoings(keys, clock.milliseconds, Compression(), MAX_MESSAGE_SIZE)
        self._route_of, self._lock = route_of, Lock()
        self._routes: dict[str, _KnownRoute] = {}
        self._connections: dict[str, BlockingConnection] = {}
        self._turn = random.randrange(1 << 16)  # noqa: S311 (senders begin at different queues)

    def send(self, message: Message) -> bool:
        """Return whether a broker has acknowledged a message; otherwise it may still be stored.

        Raises:
            MqlakeError: the message cannot be sent at all, or its topic has no route.
        """
        outgoing = self._outgoings.single(message)
        with self._lock:
            queue, address = self._place(message.topic)
            if address is None:
                return False
            try:
                answer = self._connection(address).request(outgoing.command(GROUP, queue))
            except ConnectionFailedError as error:
                _log.debug("a message is sent again: %s", error)
                self._drop(address)
            else:
                if answer.code in _STORED:
                    return True
                _log.debug("a message is sent again: %s: %s", address, answer.remark)
            self._routes.pop(message.topic, None)
            return False

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            for address in list(self._connections):
                self._drop(address)

    def _place(self, topic: str) -> tuple[MessageQueue, str | None]:
        known = self._routes.get(topic)
        if known is None or monotonic() - known.since > _ROUTE_AGE:
            known = self._refreshed(topic, known)
        queues = known.route.write_queues
        if not queues:
            return MessageQueue(topic, "", 0), None
        self._turn += 1
        queue = queues[self._turn % len(queues)]
        return queue, known.route.addresses.get(queue.broker_name, {}).get(MASTER)

    def _refreshed(self, topic: str, known: _KnownRoute | None) -> _KnownRoute:
        try:
            route = self._route_of(topic)
        except MqlakeError:
            if known is None:
                raise
            route = known.route  # Brokers may work while no name server does.
        if len(self._routes) >= _MOST_ROUTES:
            self._routes.clear()
        self._routes[topic] = found = _KnownRoute(route, monotonic())
        return found

    def _connection(self, address: str) -> BlockingConnection:
        connection = self._connections.get(address)
        if connection is not None and connection.is_usable:
            return connection
        self._drop(address)
        connection = BlockingConnection(address, _TIMEOUT, self._access)
        self._connections[address] = connection
        return connection

    def _drop(self, address: str) -> None:
        connection = self._connections.pop(address, None)
        if connection is not None:
            connection.close()
