"""Locks of queues that are consumed in order (upstream: `RebalanceImpl.lockAll`)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

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
        answers = [answer async for answer in self._ask(queues)]
        return {queue for _, locked in answers for queue in locked}

    async def renew(self, held: Iterable[QueueMessages]) -> None:
        """Keep the locks of queues.

        What another consumer has locked is not consumed any more. While a broker does not answer,
        its locks are believed as long as they live.
        """
        queues = {each.queue: each for each in held if not each.is_dropped}
        now = self._now()
        async for asked, locked in self._ask(queues):
            for queue in asked:
                queues[queue].locked_until = now + LIFE if queue in locked else 0.0

    async def _ask(
        self, queues: Iterable[MessageQueue]
    ) -> AsyncIterator[tuple[Sequence[MessageQueue], set[MessageQueue]]]:
        """Yield the queues of each broker that answers, and those of them that it locks."""
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_broker.setdefault(queue.broker_name, []).append(queue)
        for broker_name, wanted in by_broker.items():
            try:
                yield wanted, set(await self._calls.lock(broker_name, wanted))
            except MqlakeError as error:
                _log.warning("broker %s does not say whether it locks: %s", broker_name, error)

    async def let_go(self, queues: Iterable[MessageQueue]) -> None:
        """Let other consumers have queues."""
        for queue in queues:
            try:
                await self._calls.unlock(queue.broker_name, [queue])
            except MqlakeError as error:
                _log.debug("broker %s keeps a lock: %s", queue.broker_name, error)
