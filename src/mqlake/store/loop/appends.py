"""Append to a live store on an event loop, without waiting until messages are confirmed.

Upstream: `DefaultMessageStore.asyncPutMessage`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mqlake.formats.properties import NAME_VALUE_SEPARATOR, WAIT, decode_properties
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.outside_puts import OutsidePuts
from mqlake.store.append.put_result import PutError, PutResult
from mqlake.store.delivery.transactions import Ended
from mqlake.store.loop.acknowledgements import Acknowledgements
from mqlake.store.loop.dispatching import Dispatching
from mqlake.store.owned_store import OwnedStore

_WAITS = f"{WAIT}{NAME_VALUE_SEPARATOR}true".encode()
_ASKS = f"{WAIT}{NAME_VALUE_SEPARATOR}".encode()


class Appends:
    """The appends of one store, for the tasks of its event loop.

    An append does not wait: it may be acknowledged once `confirm` has returned it. A refusal is
    also a result.

    Attributes:
        outside: for a caller that writes records itself, and then calls `note_written`.
    """

    def __init__(
        self, core: OwnedStore, dispatching: Dispatching, waiting: Acknowledgements
    ) -> None:
        self.outside: OutsidePuts = core.puts.outside
        self._puts, self._redelivery, self._log = core.puts, core.redelivery, core.log
        self._transactions, self._watermarks = core.transactions, core.watermarks
        self._copies, self._dispatching, self._waiting = core.copies, dispatching, waiting

    @property
    def largest_record(self) -> int:
        """Maximum size of one record, or of one batch of them, in bytes."""
        return self._log.largest_record

    def many(self, messages: Sequence[Message]) -> list[PutResult]:
        """Append messages of any topics and queues; a refused one does not stop the others."""
        results = self._puts.put_many(messages)
        self._dispatching.soon()
        if self._copies.are_counted:
            return [waiting_if_asked(*pair) for pair in zip(results, messages, strict=True)]
        return results

    def batch(self, batch: MessageBatch) -> PutResult:
        """Append all messages of a batch as a client encoded it, or none."""
        result = self._puts.put_batch(batch)
        self._dispatching.soon()
        return self.asked(result, batch)

    def note_written(self, end: int) -> None:
        """Note records that a caller wrote, as `OutsidePuts.written` does."""
        self._puts.note_written(end)
        self._dispatching.soon()

    def again(self, message: Message, *, may_wait: bool = False) -> PutResult:
        """Append a message that was accepted before.

        It may be longer than the current `maxMessageSize`, and loses optional properties if it is
        too long for a record (`Redelivery`).

        Args:
            may_wait: whether a delay that its properties ask for counts.
        """
        again = self._puts.put_again if may_wait else self._redelivery.put
        result = again(message)
        self._dispatching.soon()
        return self.asked(result, message)

    def half(self, message: Message) -> PutResult:
        """Append a half message, of the group in its PGROUP."""
        result = self._transactions.prepare(message)
        self._dispatching.soon()
        return result

    def end(
        self,
        physical_offset: int,
        queue_offset: int,
        group: str,
        *,
        commit: bool,
        is_answer: bool = False,
    ) -> Ended:
        """Commit the half message at these offsets, or roll it back: see `Transactions.end`."""
        ended = self._transactions.end(
            physical_offset, queue_offset, group, commit=commit, is_answer=is_answer
        )
        self._dispatching.soon()
        return ended

    def asked(self, result: PutResult, message: Message | MessageBatch) -> PutResult:
        """Return a result with whether its message asks to wait for slaves."""
        return waiting_if_asked(result, message) if self._copies.are_counted else result

    async def confirm(self, results: Sequence[PutResult]) -> Sequence[PutResult]:
        """Return results of appends once they may be acknowledged.

        Messages that are not durable, or not in time, then have another status.
        """
        if (last := self._watermarks.unconfirmed(results)) is None:
            return results
        try:
            await self._waiting.wait(last)
        except PutError as error:
            failed, is_confirmed = error.result, self._watermarks.is_confirmed
            return [
                result if is_confirmed(result) else result.failed(failed.status, failed.reason)
                for result in results
            ]
        return results


def waiting_if_asked(result: PutResult, message: Message | MessageBatch) -> PutResult:
    """Return a result with whether its message must be on slaves before it is acknowledged."""
    if (data := message.encoded_properties) is not None:
        if _WAITS in data or _ASKS not in data:
            return result
        asked = decode_properties(data).get(WAIT)
    elif isinstance(message, Message) and message.properties:
        asked = message.properties.get(WAIT)
    else:
        return result
    if not asked or asked.lower() == "true":
        return result
    return msgspec.structs.replace(result, waits_for_slaves=False)
