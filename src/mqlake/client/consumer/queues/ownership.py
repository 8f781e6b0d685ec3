"""The queues that a consumer owns, from the moment they are assigned until they are revoked.

Upstream: `RebalanceImpl`, `RebalancePushImpl`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.parts import ConsumerParts
from mqlake.client.consumer.pulling import log_failure
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.queues.locks import FOREVER, LIFE
from mqlake.client.consumer.queues.rebalance import Share, share_of
from mqlake.client.consumer.subscriptions import ALL, SelectedTopic
from mqlake.errors import MqlakeError
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.retry_topics import retry_topic as pop_retry_topic

_LATE = 120.0
"""Seconds after which the reading of a stalled queue is restarted."""
_PATIENCE = 0.5
"""Seconds for which a queue in order waits for its messages that are handed over."""
_MOST_PATIENCE = 20.0

Listener = Callable[[set[MessageQueue]], Awaitable[object]]
"""Called with queues that were assigned to a consumer, or that it is about to lose."""

_log = logging.getLogger(__name__)


class Ownership:
    """Acquires and gives up queues as members join and leave the group.

    Args:
        wanted: the subscription of each topic; topics of retries may be added.
        on_assigned: called with queues that were assigned to the consumer.
        on_revoked: called with queues that the consumer is about to give up.
    """

    def __init__(
        self,
        parts: ConsumerParts,
        wanted: dict[str, SelectedTopic],
        on_assigned: Listener | None,
        on_revoked: Listener | None,
    ) -> None:
        self._parts, self._wanted = parts, wanted
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._loop = asyncio.get_running_loop()
        self._held: dict[MessageQueue, QueueMessages] = {}
        self._readers: dict[MessageQueue, asyncio.Task[None]] = {}
        self._leaving_since: dict[MessageQueue, float] = {}
        self._announced: set[MessageQueue] = set()
        self._changing = asyncio.Lock()

    def __iter__(self) -> Iterator[QueueMessages]:
        return iter(self._held.values())

    def get(self, queue: MessageQueue) -> QueueMessages | None:
        """Return the held messages of a queue, None if the queue is not the consumer's."""
        return self._held.get(queue)

    @property
    def queues(self) -> frozenset[MessageQueue]:
        """Return the queues that the consumer owns or pops."""
        return self._parts.popping.queues.union(self._held)

    async def rebalance(self) -> bool:
        """Acquire the queues that are the consumer's share, and give up the others.

        Returns:
            True if that is complete; otherwise it must be repeated soon.
        """
        shares = await self._shares()
        self._want_what_was_popped(shares)
        keeps = frozenset[MessageQueue]().union(*(share.queues for share in shares.values()))
        pops = frozenset[MessageQueue]().union(*(share.popped for share in shares.values()))
        unknown = self._wanted.keys() - shares.keys()
        leaves = {
            queue for queue in self._held if queue not in keeps and queue.topic not in unknown
        }
        popped = self._parts.popping.queues
        pops |= {queue for queue in popped if queue.topic in unknown}
        await self._announce_revoked(leaves | (popped - pops))
        async with self._changing:
            await self._parts.popping.keep(pops)
            self._stay(keeps)
            late = self._late()
            is_done = await self._leave(
                [queue for queue in self._held if queue in leaves or queue in late]
            )
            for share in shares.values():
                is_done &= await self._take(share)
        await self._announce_assigned()
        return is_done

    async def first_offsets(self) -> None:
        """Wait until each queue has the offset to begin at, or could not get it.

        A queue that another member may still read is not waited for.
        """
        await asyncio.gather(*(held.is_begun.wait() for held in self))

    async def restart(
        self,
        offsets: Mapping[MessageQueue, int],
        handled: AbstractSet[ConsumedMessage] = frozenset(),
    ) -> None:
        """Read some of the consumer's own queues from other offsets, and commit these.

        Args:
            handled: the messages that handlers have now.
        """
        async with self._changing:
            mine = {queue: offset for queue, offset in offsets.items() if queue in self._held}
            try:
                for queue, offset in mine.items():
                    await self._stop_reading(queue)
                    self._held[queue].restart(offset, handled)
                stopped = [self._held[queue] for queue in mine]
                await asyncio.gather(*(self._settle(held, leaves=False) for held in stopped))
            finally:
                # A caller that gives up early has stopped some of the readers only.
                for queue in mine:
                    reader = self._readers.get(queue)
                    if reader is None or reader.done():
                        self._read(self._held[queue], 0.0)

    async def _shares(self) -> dict[str, Share]:
        """Return the consumer's share of each topic whose queues and members are known."""
        parts, topics = self._parts, list(self._wanted)
        found = await asyncio.gather(
            *(
                share_of(topic, parts.instance, parts.calls.group, parts.settings)
                for topic in topics
            )
        )
        return {topic: share for topic, share in zip(topics, found, strict=True) if share}

    def _want_what_was_popped(self, shares: Mapping[str, Share]) -> None:
        """Subscribe to messages that were popped and not acknowledged, in topics that are pulled
        now.

        Upstream: `RebalanceImpl.updateMessageQueueAssignment`.
        """
        for topic, share in shares.items():
            is_retried = topic.startswith(RETRY_PREFIX)
            if share.is_assigned and share.queues and not share.popped and not is_retried:
                name = pop_retry_topic(topic, self._parts.calls.group, is_v2=False)
                self._wanted.setdefault(name, SelectedTopic(name, ALL, self._wanted[topic].version))

    async def note(self) -> None:
        """Send the offsets of all queues to the brokers, without waiting for their answers."""
        await asyncio.gather(*map(self._note, self))
        self._parts.offsets.flush()

    async def _note(self, held: QueueMessages) -> None:
        if (offset := held.committed_offset) is not None:
            await self._parts.offsets.note(held.queue, offset)

    async def commit(self) -> None:
        """Commit the offsets of all queues.

        Raises:
            MqlakeError: an offset is not committed; all were tried.
        """
        results = await asyncio.gather(*map(self._commit, self), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _commit(self, held: QueueMessages) -> None:
        if (offset := held.committed_offset) is not None:
            await self._parts.offsets.commit(held.queue, offset)

    async def _settle(self, held: QueueMessages, *, leaves: bool) -> None:
        try:
            if (offset := held.committed_offset) is not None:
                await self._parts.offsets.settle(held.queue, offset, leaves=leaves)
        except MqlakeError as error:
            _log.warning("the offset of %s is not committed: %s", held.queue, error)

    async def close(self) -> None:
        """Commit the offsets of all queues, and give the queues up."""
        await self._announce_revoked(self.queues)
        async with self._changing:
            await self._parts.popping.close()
            await asyncio.gather(*map(self._stop_reading, list(self._readers)))
            await asyncio.gather(*(self._settle(held, leaves=True) for held in self))
            if self._parts.settings.takes_locks:
                await self._parts.locks.let_go(self._held)
            for held in self:
                held.drop()
            self._held.clear()

    def _stay(self, queues: Collection[MessageQueue]) -> None:
        """Resume queues that were to be given up but are assigned to the consumer again."""
        for queue in [queue for queue in self._leaving_since if queue in queues]:
            del self._leaving_since[queue]
            if (held := self._held.get(queue)) is not None:
                held.suspended_until = 0.0
                self._parts.inbox.offer(held)

    def _late(self) -> set[MessageQueue]:
        oldest = self._loop.time() - _LATE
        return {queue for queue, held in self._held.items() if held.last_pull < oldest}

    async def _take(self, share: Share) -> bool:
        parts, is_done = self._parts, True
        takes_locks = parts.settings.takes_locks
        new = share.queues - self._held.keys()
        wanted = sorted(new, key=lambda queue: (queue.broker_name, queue.queue_id))
        locked = await parts.locks.take(wanted) if takes_locks else set(wanted)
        for queue in wanted:
            if queue not in locked:
                is_done = False
                continue
            held = QueueMessages(queue, self._loop.time, in_order=parts.settings.in_order)
            held.locked_until = self._loop.time() + LIFE if takes_locks else FOREVER
            self._held[queue] = held
            self._read(held, parts.settings.handover if share.has_others else 0.0)
        return is_done

    def _read(self, held: QueueMessages, delay: float) -> None:
        reading = self._parts.pulling.run(held, self._wanted[held.queue.topic], delay)
        self._readers[held.queue] = task = self._loop.create_task(reading)
        task.add_done_callback(log_failure)
        task.add_done_callback(lambda _: held.is_begun.set())
        if delay:
            held.is_begun.set()

    async def _leave(self, queues: Sequence[MessageQueue]) -> bool:
        return all(await asyncio.gather(*map(self._leave_one, queues)))

    async def _leave_one(self, queue: MessageQueue) -> bool:
        held, parts = self._held[queue], self._parts
        if parts.settings.takes_locks and not await self._may_leave(held):
            return False
        self._leaving_since.pop(queue, None)
        await self._stop_reading(queue)
        await self._settle(held, leaves=True)
        held.drop()
        self._held.pop(queue, None)
        if parts.settings.takes_locks:
            await parts.locks.let_go([queue])
        return True

    async def _may_leave(self, held: QueueMessages) -> bool:
        """Wait briefly for messages that are handed over: the next consumer must not start before
        they end.
        """
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

    # Listeners are called without the lock: they may seek and commit.

    async def _announce_revoked(self, leaves: Collection[MessageQueue]) -> None:
        revoked = self._announced.intersection(leaves)
        await _call(self._on_revoked, revoked)
        # If `close` interrupts the listener, it is called again then.
        self._announced -= revoked

    async def _announce_assigned(self) -> None:
        assigned = set(self.queues - self._leaving_since.keys() - self._announced)
        self._announced |= assigned
        await _call(self._on_assigned, assigned)


async def _call(listener: Listener | None, queues: set[MessageQueue]) -> None:
    if listener is None or not queues:
        return
    try:
        await listener(set(queues))
    except Exception:  # noqa: BLE001 (it is the user's)
        _log.exception("a listener for queues failed")
