"""Locks of queues that are consumed in order (upstream: `RebalanceImpl.lockAll`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.message_queue import MessageQueue

INTERVAL = 20.0
LIFE = 30.0
"""Seconds for which a lock is believed; brokers keep one for 60."""
FOREVER = float("inf")

_log = logging.getLogger(__name__)


class Locks:
    """Takes, renews and lets go of locks at brokers.

    Args:
        now: a clock in seconds.
    """

    def __init__(self, calls: BrokerCalls, now: Callable[[], float]) -> None:
        self._calls, self._now = calls, now

    async def take(self, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        """Return those of some queues that are locked for this consumer now."""
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_broker.setdefault(queue.broker_name, []).append(queue)
        locked: set[MessageQueue] = set()
        for broker_name, wanted in by_broker.items():
            try:
                locked.update(await self._calls.lock(broker_name, wanted))
            except MqlakeError as error:
                _log.warning("broker %s locks no queues now: %s", broker_name, error)
        return locked

    async def renew(self, held: Iterable[QueueMessages]) -> None:
        """Keep the locks of queues; those that another consumer has are not consumed any more."""
        queues = {each.queue: each for each in held if not each.is_dropped}
        now = self._now()
        locked = await self.take(queues)
        for queue in locked & queues.keys():
            queues[queue].locked_until = now + LIFE

    async def let_go(self, queues: Iterable[MessageQueue]) -> None:
        """Let other consumers have queues."""
        for queue in queues:
            try:
                await self._calls.unlock(queue.broker_name, [queue])
            except MqlakeError as error:
                _log.debug("broker %s keeps a lock: %s", queue.broker_name, error)
