"""What becomes of messages that were handed over (upstream: `ConsumeMessageConcurrentlyService`,
`ConsumeMessageOrderlyService`)."""

from __future__ import annotations

import asyncio
import logging

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.inbox import Inbox
from mqlake.client.consumer.ownership import Ownership
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.errors import MqlakeError

_LATE_LEVEL = 3
_EARLY = 0.001
_AGAIN = 5.0
"""Seconds after which a message that no broker took back is handed over again."""

_log = logging.getLogger(__name__)


class Finishing:
    """Finishes messages, or has them come again."""

    def __init__(
        self,
        calls: BrokerCalls,
        inbox: Inbox,
        settings: ConsumerSettings,
        ownership: Ownership,
    ) -> None:
        self._calls, self._inbox, self._settings = calls, inbox, settings
        self._ownership = ownership
        self._loop = asyncio.get_running_loop()

    async def ack(self, message: ConsumedMessage) -> bool:
        """Take note that a message is done; return whether that counts."""
        held = self._ownership.get(message.queue)
        if held is None or not held.holds(message):
            return False
        held.finish(message)
        self._inbox.offer(held)
        return True

    async def retry_later(self, message: ConsumedMessage, delay_level: int) -> bool:
        """Have a message come again; return whether that counts."""
        held = self._ownership.get(message.queue)
        if held is None or not held.holds(message):
            return False
        if self._settings.broadcasting:
            _log.warning("message %s failed, and is not retried: broadcast", message.message_id)
            return await self.ack(message)
        if self._settings.in_order and message.reconsume_times < self._settings.retries:
            self._suspend(held, message)
            return True
        try:
            await self._calls.send_back(message, delay_level, self._settings.retries)
        except MqlakeError as error:
            _log.warning("message %s comes again here: %s", message.message_id, error)
            message.reconsume_times += 1
            self._loop.call_later(_AGAIN, self._again, held, message)
            return True
        return await self.ack(message)

    async def give_up_late_ones(self) -> None:
        """Have messages come again that somebody has had for too long."""
        before = self._loop.time() - self._settings.handling_timeout
        for held in list(self._ownership):
            for message in held.out_since(before):
                _log.warning(
                    "message %s was not finished in %g s: it comes again",
                    message.message_id,
                    self._settings.handling_timeout,
                )
                await self.retry_later(message, _LATE_LEVEL)

    def _suspend(self, held: QueueMessages, message: ConsumedMessage) -> None:
        message.reconsume_times += 1
        held.suspended_until = self._loop.time() + self._settings.suspend
        held.give_back(message)
        # A timer may be early by the resolution of the clock.
        self._loop.call_later(self._settings.suspend + _EARLY, self._inbox.offer, held)

    def _again(self, held: QueueMessages, message: ConsumedMessage) -> None:
        if held.holds(message):
            held.give_back(message)
            self._inbox.offer(held)
