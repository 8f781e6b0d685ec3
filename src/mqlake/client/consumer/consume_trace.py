"""Trace the messages of a consumer (upstream: `ConsumeMessageTraceHookImpl`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.trace import records
from mqlake.client.trace.records import ConsumeOutcome
from mqlake.client.trace.tracer import Tracer
from mqlake.protocol.bodies.message_queue import MessageQueue

_MOST_OUT = 16_384
"""Maximum number of messages whose start is remembered."""

_Place = tuple[MessageQueue, int]


class ConsumeTrace:
    """Records which messages were handed over, and how their handling ended.

    Args:
        next_id: returns unique keys.
        now: milliseconds since 1970.
    """

    def __init__(
        self, tracer: Tracer, group: str, next_id: Callable[[], str], now: Callable[[], int]
    ) -> None:
        self._tracer, self._group, self._next_id, self._now = tracer, group, next_id, now
        self._begun: OrderedDict[_Place, tuple[str, int]] = OrderedDict()

    async def close(self) -> None:
        """Send the records that are waiting."""
        await self._tracer.close()

    def handed_over(self, messages: Sequence[ConsumedMessage]) -> None:
        """Record that messages are about to be handled."""
        request_id, now = self._next_id(), self._now()
        for message in messages:
            if not records.is_wanted(message.properties):
                continue
            self._begun[message.queue, message.queue_offset] = request_id, now
            if len(self._begun) > _MOST_OUT:
                self._begun.popitem(last=False)
            self._tracer.note(
                records.handed_over(
                    message.message_id,
                    message.properties,
                    self._group,
                    request_id,
                    at=now,
                    times=message.reconsume_times,
                )
            )

    def handled(self, message: ConsumedMessage, outcome: ConsumeOutcome) -> None:
        """Record how the handling of a message ended."""
        begun = self._begun.pop((message.queue, message.queue_offset), None)
        if begun is None:
            return
        request_id, at = begun
        now = self._now()
        self._tracer.note(
            records.handled(
                message.message_id,
                message.properties,
                self._group,
                request_id,
                outcome,
                at=now,
                took=now - at,
            )
        )
