"""Trace the messages of a producer (upstream: `SendMessageTraceHookImpl`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mqlake.client.message import DELAYS, Message, ReceivedMessage
from mqlake.client.producer.outgoing import Outgoing
from mqlake.client.producer.result import SendResult, SendStatus
from mqlake.client.trace import records
from mqlake.client.trace.records import MessageKind, Traced
from mqlake.client.trace.tracer import Tracer
from mqlake.formats.properties import KEY_SEPARATOR
from mqlake.formats.sys_flag import TRANSACTION_PREPARED
from mqlake.protocol.namespace import Namespace


class SendTrace:
    """Records what was sent, and how transactions ended.

    Args:
        address_of: returns the address of a broker's master, None if it is unknown.
        now: milliseconds since 1970.
    """

    def __init__(
        self,
        tracer: Tracer,
        group: str,
        namespace: Namespace,
        address_of: Callable[[str], str | None],
        now: Callable[[], int],
    ) -> None:
        self._tracer, self._group = tracer, namespace.unwrap(group)
        self._namespace = namespace
        self._address_of, self.now = address_of, now

    async def close(self) -> None:
        """Send the records that are waiting."""
        await self._tracer.close()

    def sent(
        self, outgoing: Outgoing, message: Message, results: Sequence[SendResult], began: int
    ) -> None:
        """Record a message that a broker has stored; of a batch only the first one, as upstream
        does.

        Args:
            began: when sending began, in milliseconds since 1970.
        """
        result = results[0]
        if not result.is_traced:
            return
        self._tracer.note(
            records.sent(
                self._traced(message, result),
                _kind(outgoing, message),
                self._group,
                result.region,
                at=began,
                took=(self.now() - began) // len(results),
                size=len(outgoing.body),
                offset_message_id=result.offset_message_id,
                is_ok=result.status is SendStatus.SEND_OK,
            )
        )

    def ended(self, message: Message, result: SendResult, state: str) -> None:
        """Record that the producer has ended a transaction; `state` as in `records`."""
        if result.is_traced:
            traced = self._traced(message, result)
            self._note_end(traced, result.transaction_id, state, is_check=False)

    def checked(self, half: ReceivedMessage, transaction_id: str | None, state: str) -> None:
        """Record what the producer answered a broker that asked for a transaction."""
        if records.is_wanted(half.properties):
            keys = KEY_SEPARATOR.join(half.keys)
            topic = self._namespace.unwrap(half.topic)
            traced = Traced(topic, half.message_id, half.tags, keys, half.store_host)
            self._note_end(traced, transaction_id, state, is_check=True)

    def _note_end(
        self, traced: Traced, transaction_id: str | None, state: str, *, is_check: bool
    ) -> None:
        record = records.transaction_ended(
            traced, self._group, transaction_id, state, at=self.now(), is_check=is_check
        )
        self._tracer.note(record)

    def _traced(self, message: Message, result: SendResult) -> Traced:
        keys = message.keys if isinstance(message.keys, str) else KEY_SEPARATOR.join(message.keys)
        broker = self._address_of(result.queue.broker_name) or ""
        topic = self._namespace.unwrap(message.topic)
        return Traced(topic, result.message_id, message.tags, keys, broker)


def _kind(outgoing: Outgoing, message: Message) -> MessageKind:
    if outgoing.sys_flag & TRANSACTION_PREPARED:
        return MessageKind.HALF
    if message.is_delayed or not DELAYS.isdisjoint(message.properties):
        return MessageKind.DELAYED
    return MessageKind.NORMAL if message.sharding_key is None else MessageKind.ORDERED
