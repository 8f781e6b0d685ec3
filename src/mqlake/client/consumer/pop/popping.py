"""Pop messages from the queues that brokers assign to a consumer, and hand the messages over.

Upstream: `DefaultMQPushConsumerImpl.popMessage`, `PopProcessQueue`,
`ConsumeMessagePopConcurrentlyService`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.consumer.consume_trace import ConsumeTrace
from mqlake.client.consumer.consumed import ConsumedMessage, Finisher
from mqlake.client.consumer.pop.calls import PopCalls, PopWish
from mqlake.client.consumer.pop.popped_messages import Popped, PoppedMessages
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.consumer.statistics import Statistics
from mqlake.client.consumer.subscriptions import SelectedTopic
from mqlake.client.trace.records import ConsumeOutcome
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.namespace import Namespace

_WAIT = 15.0
_MOST_AT_ONCE, _MOST_HELD = 32, 96
_FULL, _PAUSED, _FAILED, _REFUSED = 0.05, 0.5, 1.0, 0.2
"""Seconds until a queue is tried again."""
_GIVEN_BACK = 1.0
"""Seconds after which another consumer gets a message that was popped and not handed over."""
_CLOSE_PATIENCE = 3.0
_DELAYS = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""Seconds until a message is redelivered: upstream's `popDelayLevel`."""
_DEAD = -1

_log = logging.getLogger(__name__)


class Popping:
    """Pops queues into the inbox, and reports to brokers how the handling of messages ended.

    Args:
        wanted: the subscription of each topic.
        offer: called with a queue that may have something to hand over.
        finisher: the consumer.
        paused: topics that are not read now.
    """

    def __init__(
        self,
        *,
        pops: PopCalls,
        calls: BrokerCalls,
        wanted: Mapping[str, SelectedTopic],
        offer: Callable[[PoppedMessages], None],
        settings: ConsumerSettings,
        finisher: Finisher,
        statistics: Statistics,
        paused: Collection[str],
        namespace: Namespace,
        trace: ConsumeTrace | None,
    ) -> None:
        self._pops, self._calls, self._wanted, self._offer = pops, calls, wanted, offer
        self._settings, self._finisher, self._statistics = settings, finisher, statistics
        self._paused, self._namespace, self._trace = paused, namespace, trace
        is_from_first = settings.consume_from == "first"
        self._wish = PopWish(_MOST_AT_ONCE, settings.pop_invisible, _WAIT, is_from_first)
        self._loop = asyncio.get_running_loop()
        self._held: dict[MessageQueue, PoppedMessages] = {}
        self._left: list[PoppedMessages] = []  # Their handlers can still finish messages.
        self._readers: set[asyncio.Task[None]] = set()

    @property
    def queues(self) -> frozenset[MessageQueue]:
        """Return the queues that are popped; one with the id -1 stands for all queues of its
        broker.
        """
        return frozenset(self._held)

    async def keep(self, queues: Collection[MessageQueue]) -> None:
        """Pop exactly these queues from now on."""
        leaves = [self._held.pop(queue) for queue in self._held.keys() - queues]
        self._left = [held for held in (*self._left, *leaves) if held.forget_expired()]
        for queue in sorted(queues - self._held.keys(), key=_place):
            held = self._held[queue] = PoppedMessages(queue, self._loop.time)
            task = self._loop.create_task(self._run(held))
            self._readers.add(task)
            task.add_done_callback(self._ended)
        await asyncio.gather(*map(self._leave, leaves))

    async def close(self) -> None:
        """Stop popping. Messages that were not handed over are given back, if a broker accepts
        that.
        """
        for task in self._readers:
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        try:
            async with asyncio.timeout(_CLOSE_PATIENCE):
                await self.keep(frozenset())
        except TimeoutError:
            _log.debug("popped messages come again after their invisible time")

    # Messages

    async def ack(self, message: ConsumedMessage) -> bool:
        """Finish a message; return whether a broker has confirmed it."""
        found = self._find(message)
        if found is None:
            return False
        held, popped = found
        is_acked = await self._ack(message, popped)
        if is_acked:
            self._note(message, ConsumeOutcome.SUCCESS)
            seconds = self._loop.time() - popped.taken
            self._statistics.finished(held.queue.topic, seconds)
        return is_acked

    async def retry_later(self, message: ConsumedMessage, delay_level: int) -> bool:
        """Have a message redelivered, or make it a dead letter; return whether that counts."""
        found = self._find(message)
        if found is None:
            return False
        held, popped = found
        self._note(message, ConsumeOutcome.FAILED)
        self._statistics.failed(held.queue.topic)
        is_dead = delay_level < 0 or message.reconsume_times >= self._settings.retries
        try:
            if is_dead:
                await self._calls.send_back(message, _DEAD, self._settings.retries)
                return await self._ack(message, popped)
            level = delay_level or message.reconsume_times
            seconds = _DELAYS[min(level, len(_DELAYS) - 1)]
            await self._hide(message, popped, seconds)
        except MqlakeError as error:
            _log.warning(
                "message %s is redelivered after its invisible time: %s", message.message_id, error
            )
        return True

    def _find(self, message: ConsumedMessage) -> tuple[PoppedMessages, Popped] | None:
        for held in (*self._held.values(), *self._left):
            if (popped := held.finish(message)) is not None:
                return held, popped
        return None

    async def _ack(self, message: ConsumedMessage, popped: Popped) -> bool:
        try:
            await self._pops.ack(message.queue, message.queue_offset, popped.receipt)
        except MqlakeError as error:
            _log.warning("message %s is redelivered: %s", message.message_id, error)
            return False
        return True

    async def _hide(self, message: ConsumedMessage, popped: Popped, seconds: float) -> None:
        place = message.queue, message.queue_offset
        await self._pops.change_invisible(*place, popped.receipt, seconds)

    def _note(self, message: ConsumedMessage, outcome: ConsumeOutcome) -> None:
        if self._trace is not None:
            self._trace.handled(message, outcome)

    # Reading

    async def _run(self, held: PoppedMessages) -> None:
        is_failing = False
        while not held.is_dropped:
            if wait := self._must_wait(held):
                await asyncio.sleep(wait)
                continue
            try:
                is_refused = await self._pop(held)
                is_failing = False
            except MqlakeError as error:
                if not is_failing:
                    _log.warning("%s cannot be popped now: %s", held.queue, error)
                is_failing = True
                await asyncio.sleep(_FAILED)
            else:
                if is_refused:
                    await asyncio.sleep(_REFUSED)

    def _must_wait(self, held: PoppedMessages) -> float:
        if held.queue.topic in self._paused:
            return _PAUSED
        return _FULL if held.forget_expired() + _MOST_AT_ONCE > _MOST_HELD else 0.0

    async def _pop(self, held: PoppedMessages) -> bool:
        """Pop once; return whether the broker was unable to hold the request."""
        wanted, asked = self._wanted[held.queue.topic], self._loop.time()
        found, is_refused = await self._pops.pop(held.queue, wanted, self._wish, ConsumedMessage)
        now = self._loop.time()
        self._statistics.pulled(held.queue.topic, len(found), now - asked)
        for message, receipt in found:
            message.finisher = self._finisher
            message.topic = self._namespace.unwrap(message.topic)
            popped = Popped(receipt, now + self._settings.pop_invisible, now)
            if not wanted.takes(message):  # The hash of another tag is equal.
                await self._ack(message, popped)
            elif held.is_dropped:
                await self._give_back(message, popped)
            else:
                held.add(message, popped)
        self._offer(held)
        return is_refused

    async def _leave(self, held: PoppedMessages) -> None:
        waiting = held.drop()
        await asyncio.gather(*(self._give_back(*each) for each in waiting))

    async def _give_back(self, message: ConsumedMessage, popped: Popped) -> None:
        try:
            await self._hide(message, popped, _GIVEN_BACK)
        except MqlakeError as error:
            _log.debug("message %s is redelivered later: %s", message.message_id, error)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._readers.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a queue is no longer popped", exc_info=error)


def _place(queue: MessageQueue) -> tuple[str, str, int]:
    return queue.topic, queue.broker_name, queue.queue_id
