"""Locks of queues that are consumed in order.

Upstream: `RebalanceImpl.lockAll`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.queues.lock_calls import LockCalls
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.message_queue import MessageQueue

INTERVAL = 20.0
LIFE = 30.0
"""Seconds for which a lock is considered valid; brokers keep a lock for 60."""
FOREVER = float("inf")

_log = logging.getLogger(__name__)


class Locks:
    """Acquires, renews and releases locks at brokers.

    Args:
        now: a clock in seconds.
    """

    def __init__(self, calls: LockCalls, now: Callable[[], float]) -> None:
        self._calls, self._now = calls, now

    async def take(self, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        """Return those queues that are locked for this consumer now."""
        return {queue for _, locked in await self._ask(queues) for queue in locked}

    async def renew(self, held: Iterable[QueueMessages]) -> None:
        """Renew the locks of queues.

        Queues that another consumer has locked are no longer consumed. While a broker does not
        answer, its locks count until they expire.
        """
        queues = {each.queue: each for each in held if not each.is_dropped}
        now = self._now()
        for asked, locked in await self._ask(queues):
            for queue in asked:
                queues[queue].locked_until = now + LIFE if queue in locked else 0.0

    async def _ask(
        self, queues: Iterable[MessageQueue]
    ) -> list[tuple[Sequence[MessageQueue], set[MessageQueue]]]:
        """Return the queues of each broker that answers, and those that it has locked."""
        asked = (self._lock(name, wanted) for name, wanted in self._calls.by_broker(queues).items())
        return [answer for answer in await asyncio.gather(*asked) if answer is not None]

    async def _lock(
        self, broker_name: str, wanted: Sequence[MessageQueue]
    ) -> tuple[Sequence[MessageQueue], set[MessageQueue]] | None:
        try:
            return wanted, set(await self._calls.lock(broker_name, wanted))
        except MqlakeError as error:
            _log.warning("broker %s does not answer a lock request: %s", broker_name, error)
            return None

    async def let_go(self, queues: Iterable[MessageQueue]) -> None:
        """Release the locks of queues; a failure is logged."""
        await asyncio.gather(
            *(self._unlock(name, wanted) for name, wanted in self._calls.by_broker(queues).items())
        )

    async def _unlock(self, broker_name: str, wanted: Sequence[MessageQueue]) -> None:
        try:
            await self._calls.unlock(broker_name, wanted)
        except MqlakeError as error:
            _log.debug("broker %s keeps a lock until it expires: %s", broker_name, error)
