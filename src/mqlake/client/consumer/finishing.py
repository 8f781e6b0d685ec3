"""Finish messages that were handed over, or have them redelivered.

Upstream: `ConsumeMessageConcurrentlyService`, `ConsumeMessageOrderlyService`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from mqlake.client.consumer.consume_trace import ConsumeTrace
from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.inbox import Inbox, InboxQueue
from mqlake.client.consumer.pop.popping import Popping
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.queues.ownership import Ownership
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.consumer.statistics import Statistics
from mqlake.client.trace.records import ConsumeOutcome
from mqlake.errors import MqlakeError

_LATE_LEVEL = 3
_DEAD = -1
"""Delay level that stands for the dead-letter topic."""
_EARLY = 0.001
_AGAIN = 5.0
"""Seconds until a message that no broker accepted for redelivery is handed over again."""

SendBack = Callable[[ConsumedMessage, int, int], Awaitable[None]]
"""Has a broker redeliver a message: see `BrokerCalls.send_back`."""

_log = logging.getLogger(__name__)


class Finishing:
    """Finishes messages, or has them redelivered.

    Args:
        send_back: asks a broker to redeliver a message.
        trace: records how the handling of each message ended.
    """

    def __init__(
        self,
        *,
        send_back: SendBack,
        inbox: Inbox[InboxQueue],
        settings: ConsumerSettings,
        ownership: Ownership,
        popping: Popping,
        statistics: Statistics,
        trace: ConsumeTrace | None = None,
    ) -> None:
        self._ask_broker, self._inbox, self._settings = send_back, inbox, settings
        self._ownership, self._popping = ownership, popping
        self._statistics, self._trace = statistics, trace
        self._loop = asyncio.get_running_loop()

    async def ack(self, message: ConsumedMessage) -> bool:
        """Finish a message; return whether that counts."""
        held = self._held_out(message)
        if held is None:
            return await self._popping.ack(message)
        self._note(message, ConsumeOutcome.SUCCESS)
        seconds = held.finish(message)
        self._statistics.finished(held.queue.topic, seconds, message.message_count())
        if self._settings.in_order:
            self._inbox.offer(held)  # The next messages waited for this one.
        return True

    async def retry_later(self, message: ConsumedMessage, delay_level: int) -> bool:
        """Have a message redelivered; return whether that counts."""
        held, settings = self._held_out(message), self._settings
        if held is None:
            return await self._popping.retry_later(message, delay_level)
        self._note(message, ConsumeOutcome.FAILED)
        self._statistics.failed(message.queue.topic, message.message_count())
        may_wait = delay_level >= 0 and message.reconsume_times < settings.retries
        if settings.in_order and may_wait:
            self._suspend(held, message)
            return True
        if settings.broadcasting:
            _log.warning("message %s failed; broadcast is not retried", message.message_id)
            return await self.ack(message)
        # A message that was retried in order as often as allowed becomes a dead letter.
        level = _DEAD if settings.in_order else delay_level
        await self._send_back(held, message, level)
        return True

    def give_back(self, message: ConsumedMessage) -> None:
        """Hand over again at once a message that its handler could not begin or finish."""
        held = self._held_out(message)
        if held is not None:
            held.give_back(message, message.reconsume_times)
            self._inbox.offer(held)

    async def give_up_late_ones(self) -> None:
        """Have messages redelivered whose handlers take too long."""
        before = self._loop.time() - self._settings.handling_timeout
        late = [message for held in self._ownership for message in held.out_since(before)]
        for message in late:
            _log.warning(
                "message %s was not finished in %g s: it is redelivered",
                message.message_id,
                self._settings.handling_timeout,
            )
            self._note(message, ConsumeOutcome.TOO_LATE)
        await asyncio.gather(*(self.retry_later(message, _LATE_LEVEL) for message in late))

    def _note(self, message: ConsumedMessage, outcome: ConsumeOutcome) -> None:
        if self._trace is not None:
            self._trace.handled(message, outcome)

    def _held_out(self, message: ConsumedMessage) -> QueueMessages | None:
        held = self._ownership.get(message.queue)
        if held is None or held.is_out(message):
            return held
        if held.release(message):
            self._inbox.offer(held)
        return None

    async def _send_back(self, held: QueueMessages, message: ConsumedMessage, level: int) -> None:
        held.park(message)
        try:
            await self._ask_broker(message, level, self._settings.retries)
        except BaseException as error:
            self._loop.call_later(_AGAIN, self._again, held, message)
            if not isinstance(error, MqlakeError):
                raise
            _log.warning("message %s is redelivered locally: %s", message.message_id, error)
        else:
            if held.is_parked(message):
                held.finish(message)
                self._inbox.offer(held)

    def _suspend(self, held: QueueMessages, message: ConsumedMessage) -> None:
        until = self._loop.time() + self._settings.suspend
        held.suspended_until = max(held.suspended_until, until)
        held.give_back(message, message.reconsume_times + 1)
        # A timer may be early by the resolution of the clock.
        self._loop.call_later(self._settings.suspend + _EARLY, self._inbox.offer, held)

    def _again(self, held: QueueMessages, message: ConsumedMessage) -> None:
        if held.is_parked(message):
            held.give_back(message, message.reconsume_times + 1)
            self._inbox.offer(held)
