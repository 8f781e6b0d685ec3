"""Append to a live store: delays, refusals, and the tick that follows (docs/live-store.md).

Upstream: `DefaultMessageStore.asyncPutMessage`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.storage.clock import Clock
from mqlake.storage.fork_guard import ForkGuard
from mqlake.store.append.appender import Appender
from mqlake.store.append.checks import Refusal
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.outside_puts import OutsidePuts
from mqlake.store.append.put_result import PutResult
from mqlake.store.core.ticks import LONGEST_TURN, Ticks
from mqlake.store.delivery.redelivery import Redelivery
from mqlake.store.delivery.schedule import Schedule
from mqlake.store.live_settings import Current
from mqlake.store.settings import StoreSettings

# Milliseconds after which a put dispatches the messages since the last dispatch by itself: under
# load, a longer tick costs less for each message.
_LONGEST_TICK = 4


class Puts:
    """The appends of one store. A refusal is a result. For the store's thread.

    Attributes:
        answer_if_busy: `Appender.answer_if_busy`, for any thread.
        outside: for a caller that writes records itself, and then calls `note_written`.
    """

    def __init__(
        self,
        appender: Appender,
        redelivery: Redelivery,
        ticks: Ticks,
        settings: Current[StoreSettings],
        clock: Clock,
        fork_guard: ForkGuard,
    ) -> None:
        self._appender, self._redelivery, self._ticks = appender, redelivery, ticks
        self._schedule = Schedule(settings, clock)
        self._clock, self._fork_guard = clock, fork_guard
        self.answer_if_busy = appender.answer_if_busy
        self._put_usual = appender.packed.put
        self.outside: OutsidePuts = appender.outside

    def put(self, message: Message) -> PutResult:
        """Append a message; it may be acknowledged once `watermarks` confirms it."""
        result = self._put_usual(message)
        if result is None:
            result = self._put_other(message)
        # The clock is not read again. If it was set back, the facade's timer ticks.
        if result.store_timestamp - self._ticks.last > _LONGEST_TICK:
            self._ticks.run(LONGEST_TURN)
        return result

    def _put_other(self, message: Message) -> PutResult:
        """Append a message that is unusual, or may ask for a delay."""
        try:
            return self._appender.put(self._schedule.apply(message))
        except Refusal as refusal:
            return refusal.result
        except (AttributeError, TypeError):  # It is not a message, or has values of other types.
            return self._appender.put(message)

    def put_fields(
        self,
        topic: str,
        body: bytes,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        queue_id: int = 0,
    ) -> PutResult:
        """Append the message with these fields, as `put` does."""
        return self.put(Message(topic, body, tags, keys, queue_id=queue_id))

    def put_again(self, message: Message) -> PutResult:
        """Append a message that was accepted before, and whose delay may count now.

        It needs no room for later properties: it loses optional properties if it is too long. If it
        is still too long to wait for a delay level, it does not wait.
        """
        try:
            waiting = self._schedule.apply(message, is_new=False)
        except Refusal as refusal:
            return refusal.result
        result = self._redelivery.put(waiting)
        if result.is_permanent and waiting.topic == SCHEDULE_TOPIC:
            return self._redelivery.put(message)
        return result

    def put_many(self, messages: Sequence[Message]) -> list[PutResult]:
        """Append messages of any topics and queues in a single call, each as `put` does."""
        results = self._appender.put_many(messages, self._put_other)
        self._tick_if_late()
        return results

    def put_batch(self, batch: MessageBatch) -> PutResult:
        """Append all messages of a batch, or none."""
        result = self._appender.put_batch(batch)
        self._tick_if_late()
        return result

    def note_written(self, end: int) -> None:
        """Note records that a caller wrote, as `OutsidePuts.written` does."""
        self.outside.written(end)
        self._tick_if_late()

    def _tick_if_late(self) -> None:
        is_late = self._clock.milliseconds() - self._ticks.last > _LONGEST_TICK
        if is_late and not self._fork_guard.is_child:
            self._ticks.run(LONGEST_TURN)
