"""The queues that a consumer has, from the moment that they become its own until they are not.

Upstream: `RebalanceImpl`, `RebalancePushImpl`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.consumer.inbox import Inbox
from mqlake.client.consumer.locks import FOREVER, LIFE, Locks
from mqlake.client.consumer.offsets import Offsets
from mqlake.client.consumer.pulling import Pulling
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.rebalance import share_of
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.consumer.subscriptions import Wanted
from mqlake.client.instance import ClientInstance
from mqlake.protocol.bodies.message_queue import MessageQueue

_LATE = 120.0
"""Seconds after which a queue that is not read is begun anew."""
_PATIENCE = 0.5
"""Seconds for which a queue in order waits for its messages that are handed over."""
_MOST_PATIENCE = 20.0

Listener = Callable[[set[MessageQueue]], Awaitable[object]]
"""Is told of queues that have become a consumer's own, or are not any more."""

_log = logging.getLogger(__name__)


@dataclass
class Parts:
    """What a consumer is made of."""

    instance: ClientInstance
    settings: ConsumerSettings
    calls: BrokerCalls
    offsets: Offsets
    inbox: Inbox
    locks: Locks
    pulling: Pulling


class Ownership:
    """Takes and leaves queues as the group's members come and go.

    Args:
        wanted: what is wanted of each topic.
    """

    def __init__(
        self,
        parts: Parts,
        wanted: Mapping[str, Wanted],
        on_assigned: Listener | None,
        on_revoked: Listener | None,
    ) -> None:
        self._parts, self._wanted = parts, wanted
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._loop = asyncio.get_running_loop()
        self._held: dict[MessageQueue, QueueMessages] = {}
        self._readers: dict[MessageQueue, asyncio.Task[None]] = {}
        self._leaving_since: dict[MessageQueue, float] = {}
        self._changing = asyncio.Lock()

    def __iter__(self) -> Iterator[QueueMessages]:
        return iter(self._held.values())

    def get(self, queue: MessageQueue) -> QueueMessages | None:
        """Return what is held of a queue, None if it is another's."""
        return self._held.get(queue)

    @property
    def queues(self) -> frozenset[MessageQueue]:
        """Return the queues that are the consumer's own."""
        return frozenset(self._held)

    async def rebalance(self) -> bool:
        """Take the queues that are the consumer's share, and leave the others.

        Returns:
            Whether all is as it should be; if not, it is to be done again soon.
        """
        async with self._changing:
            return await self._rebalance()

    async def restart(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Read queues from other offsets on, those that are the consumer's own."""
        async with self._changing:
            mine = {queue: offset for queue, offset in offsets.items() if queue in self._held}
            for queue in mine:
                self._held.pop(queue).drop()
                await self._stop_reading(queue)
            await self._parts.offsets.commit(mine, is_last=True)
            await self._rebalance()

    async def _rebalance(self) -> bool:
        is_done, before = True, self.queues
        parts = self._parts
        for topic in list(self._wanted):
            share = await share_of(
                topic, parts.instance.client_id, parts.instance.routes, parts.calls, parts.settings
            )
            if share is None:
                continue
            self._stay(share.queues)
            late = self._late(topic)
            mine = {queue for queue in self._held if queue.topic == topic}
            is_done &= await self._leave((mine - share.queues) | late)
            delay = parts.settings.handover if share.has_others else 0.0
            is_done &= await self._take(share.queues - self._held.keys(), delay)
        unwanted = {queue for queue in self._held if queue.topic not in self._wanted}
        is_done &= await self._leave(unwanted)
        await self._tell(before)
        return is_done

    async def commit(self, *, is_last: bool = False) -> None:
        """Keep how far all queues are finished."""
        offsets = {
            held.queue: offset
            for held in self
            if (offset := held.committed_offset) is not None and not held.is_dropped
        }
        await self._parts.offsets.commit(offsets, is_last=is_last)

    async def close(self) -> None:
        """Leave all queues; what is finished of them is kept."""
        async with self._changing:
            for queue in list(self._readers):
                await self._stop_reading(queue)
            await self.commit(is_last=True)
            if self._parts.settings.takes_locks:
                await self._parts.locks.let_go(self._held)
            before = self.queues
            for held in self:
                held.drop()
            self._held.clear()
            await self._tell(before)

    def _stay(self, queues: Collection[MessageQueue]) -> None:
        """Hand over again what was to be left, and is the consumer's own after all."""
        for queue in self._leaving_since.keys() & queues:
            del self._leaving_since[queue]
            if (held := self._held.get(queue)) is not None:
                held.suspended_until = 0.0
                self._parts.inbox.offer(held)

    def _late(self, topic: str) -> set[MessageQueue]:
        oldest = self._loop.time() - _LATE
        return {
            queue
            for queue, held in self._held.items()
            if queue.topic == topic and held.last_pull < oldest
        }

    async def _take(self, queues: Iterable[MessageQueue], delay: float) -> bool:
        parts, is_done = self._parts, True
        wanted = sorted(queues, key=lambda queue: (queue.broker_name, queue.queue_id))
        takes_locks = parts.settings.takes_locks
        locked = await parts.locks.take(wanted) if takes_locks else set(wanted)
        for queue in wanted:
            if queue not in locked:
                is_done = False
                continue
            held = QueueMessages(queue, self._loop.time, in_order=parts.settings.in_order)
            held.locked_until = self._loop.time() + LIFE if takes_locks else FOREVER
            self._held[queue] = held
            reading = parts.pulling.run(held, self._wanted[queue.topic], delay)
            self._readers[queue] = task = self._loop.create_task(reading)
            task.add_done_callback(_look_at)
        return is_done

    async def _leave(self, queues: Iterable[MessageQueue]) -> bool:
        is_done = True
        for queue in list(queues):
            held = self._held[queue]
            if self._parts.settings.takes_locks and not await self._may_leave(held):
                is_done = False
                continue
            self._leaving_since.pop(queue, None)
            await self._stop_reading(queue)
            if (offset := held.committed_offset) is not None:
                await self._parts.offsets.commit({queue: offset}, is_last=True)
            held.drop()
            self._held.pop(queue, None)
            if self._parts.settings.takes_locks:
                await self._parts.locks.let_go([queue])
        return is_done

    async def _may_leave(self, held: QueueMessages) -> bool:
        """Wait a little for what is handed over: the next consumer must not begin before."""
        now = self._loop.time()
        since = self._leaving_since.setdefault(held.queue, now)
        held.suspended_until = float("inf")
        while held.has_out and self._loop.time() < now + _PATIENCE:  # noqa: ASYNC110 (rare, short)
            await asyncio.sleep(0.01)
        return not held.has_out or self._loop.time() > since + _MOST_PATIENCE

    async def _stop_reading(self, queue: MessageQueue) -> None:
        task = self._readers.pop(queue, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _tell(self, before: frozenset[MessageQueue]) -> None:
        now = self.queues
        for listener, queues in (
            (self._on_revoked, before - now),
            (self._on_assigned, now - before),
        ):
            if listener is None or not queues:
                continue
            try:
                await listener(set(queues))
            except Exception:  # noqa: BLE001 (it is the user's)
                _log.exception("a listener for queues failed")


def _look_at(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a queue is not read any more; it is begun anew later", exc_info=error)
