"""Choose the queue of a message (upstream: `MQFaultStrategy`, `LatencyFaultToleranceImpl`)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from mqlake.client.errors import NoRouteError
from mqlake.client.routes import TopicRoute
from mqlake.formats.java_string import hash_code
from mqlake.protocol.bodies.message_queue import MessageQueue

_AVOIDED = (
    (15.0, 30.0),
    (5.0, 10.0),
    (3.0, 6.0),
    (1.8, 5.0),
    (0.55, 2.0),
)
"""Latencies in seconds, and the seconds for which a broker with that latency is avoided."""

FAILED = 10.0
"""Latency in seconds that a failure stands for."""


class QueueChoice:
    """Chooses the queues of each topic in turn, and avoids brokers that were slow.

    Args:
        now: a clock in seconds.
        avoids_slow_brokers: upstream's `sendLatencyEnable`.
    """

    def __init__(self, now: Callable[[], float], *, avoids_slow_brokers: bool) -> None:
        self._now, self._avoids = now, avoids_slow_brokers
        self._turns: dict[str, int] = {}
        self._avoided_until: dict[str, float] = {}

    def next(self, route: TopicRoute, failed_broker: str | None = None) -> MessageQueue:
        """Return the queue whose turn it is.

        Args:
            failed_broker: the broker at which a try of the same message has just failed.

        Raises:
            NoRouteError: no queue accepts messages.
        """
        queues = require_queues(route)
        turn = self._turns.get(route.topic)
        if turn is None:
            turn = random.randrange(len(queues))  # noqa: S311 (producers begin at different queues)
        self._turns[route.topic] = turn + 1
        if failed_broker is None and not self._avoids:
            return queues[turn % len(queues)]
        if failed_broker and all(queue.broker_name == failed_broker for queue in queues):
            failed_broker = None
        # A topic may have thousands of queues: only as many as needed are examined.
        in_turn = (queues[(turn + number) % len(queues)] for number in range(len(queues)))
        others = (queue for queue in in_turn if queue.broker_name != failed_broker)
        if not self._avoids:
            return next(others)
        avoided: list[MessageQueue] = []
        now = self._now()
        for queue in others:
            if self._avoided_until.get(queue.broker_name, now) <= now:
                return queue
            avoided.append(queue)
        return min(avoided, key=lambda queue: self._avoided_until.get(queue.broker_name, now))

    def took(self, broker_name: str, seconds: float) -> None:
        """Note how long a broker took to answer; FAILED if it did not."""
        if not self._avoids:
            return
        avoided = next((time for latency, time in _AVOIDED if seconds >= latency), 0.0)
        self._avoided_until[broker_name] = self._now() + avoided


def by_sharding_key(queues: Sequence[MessageQueue], key: str) -> MessageQueue:
    """Return the queue of a key: the queue that `SelectMessageQueueByHash` chooses."""
    return queues[abs(hash_code(key)) % len(queues)]


def require_queues(route: TopicRoute) -> Sequence[MessageQueue]:
    """Return the queues of a topic that accept messages.

    Raises:
        NoRouteError: there is no such queue.
    """
    if not route.write_queues:
        raise NoRouteError(f"topic {route.topic}: no queue accepts messages now")
    return route.write_queues
