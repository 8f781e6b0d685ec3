"""AckMessage, ChangeInvisibleDuration and ForwardMessageToDeadLetterQueue.

Upstream: `AckMessageActivity`, `ChangeInvisibleDurationActivity`,
`ForwardMessageToDLQActivity`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from inspect import iscoroutine
from typing import Any, Final, TypeVar, cast

from mqlake.grpc.call import Call
from mqlake.grpc.messages import (
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    AckMessageResultEntry,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    Code,
    ForwardMessageToDeadLetterQueueRequest,
    ForwardMessageToDeadLetterQueueResponse,
)
from mqlake.proxy.at_once import begun
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.consuming.deliveries import Deliveries, GroupDelivery
from mqlake.proxy.consuming.message_handle import HandleFormatError, MessageHandle, parse_handle
from mqlake.proxy.consuming.renewer import Renewer
from mqlake.proxy.consuming.times import check_invisible
from mqlake.proxy.errors import OK, CallStatus, StatusError, outcome_of_error
from mqlake.proxy.names import group_of, topic_of
from mqlake.proxy.state import ProxyState

_MOST: Final = 1024
"""Entries of one call."""
_AT_ONCE: Final = 32
"""Acknowledgements of one call that are sent at a time."""

R = TypeVar("R")


class Settling:
    """Serves calls that settle messages."""

    def __init__(self, state: ProxyState, deliveries: Deliveries, renewer: Renewer) -> None:
        self._state, self._deliveries, self._renewer = state, deliveries, renewer

    async def acknowledge(
        self, call: Call, caller: Caller, request: AckMessageRequest
    ) -> AckMessageResponse:
        """Acknowledge messages."""
        group, topic = group_of(request.group), topic_of(request.topic)
        entries = request.entries
        if not entries:
            raise StatusError(Code.INTERNAL_SERVER_ERROR, "the call acknowledges no message")
        if len(entries) > _MOST:
            reason = f"the call has {len(entries)} entries; the maximum is {_MOST}"
            raise StatusError(Code.BAD_REQUEST, reason)
        place = f"{call.peer}: AckMessage"
        outcomes: list[CallStatus] = []
        for start in range(0, len(entries), _AT_ONCE):
            if start:  # Even if the broker answers at once, others have their turn.
                await asyncio.sleep(0)
            some = (
                self._acknowledge(caller, group, topic, entry, place)
                for entry in entries[start : start + _AT_ONCE]
            )
            outcomes += await self._all_of(some)
        return AckMessageResponse(
            status=_common(outcomes).status,
            entries=[
                AckMessageResultEntry(
                    message_id=entry.message_id,
                    receipt_handle=entry.receipt_handle,
                    status=outcome.status,
                )
                for entry, outcome in zip(entries, outcomes, strict=True)
            ],
        )

    async def _all_of(self, work: Iterable[Coroutine[Any, Any, R]]) -> list[R]:
        """Return what coroutines return; they run beside each other."""
        if not self._state.brokers.answer_at_once:
            return await asyncio.gather(*work)
        found = [begun(each) for each in work]
        later = iter(await asyncio.gather(*filter(iscoroutine, found)))
        return [next(later) if iscoroutine(each) else cast("R", each) for each in found]

    async def _acknowledge(
        self, caller: Caller, group: str, topic: str, entry: AckMessageEntry, place: str
    ) -> CallStatus:
        try:
            handle = _handle(entry.receipt_handle)
            lite = entry.lite_topic or None
            delivery = GroupDelivery(caller, group, topic, entry.message_id, handle, lite)
            await self._settle(delivery, self._deliveries.acknowledge)
        except Exception as error:  # noqa: BLE001 (whatever is raised is the answer)
            return outcome_of_error(error, place)
        return OK

    async def change_invisible(
        self, _call: Call, caller: Caller, request: ChangeInvisibleDurationRequest
    ) -> ChangeInvisibleDurationResponse:
        """Let a message become visible later, or sooner."""
        group, topic = group_of(request.group), topic_of(request.topic)
        invisible, suspend = request.invisible_duration.ToMilliseconds(), request.suspend
        check_invisible(invisible, 0, self._state.settings.max_invisible_time_mills)
        handle = _handle(request.receipt_handle)
        lite = request.lite_topic or None
        delivery = GroupDelivery(caller, group, topic, request.message_id, handle, lite)
        new = await self._settle(
            delivery,
            lambda newest: self._deliveries.change_invisible(
                newest, invisible, is_suspended=suspend
            ),
        )
        return ChangeInvisibleDurationResponse(status=OK.status, receipt_handle=new.text)

    async def forward(
        self, _call: Call, caller: Caller, request: ForwardMessageToDeadLetterQueueRequest
    ) -> ForwardMessageToDeadLetterQueueResponse:
        """Put a message into the dead-letter topic of its group."""
        group, topic = group_of(request.group), topic_of(request.topic)
        handle = _handle(request.receipt_handle)
        lite = request.lite_topic or None
        delivery = GroupDelivery(caller, group, topic, request.message_id, handle, lite)
        await self._settle(delivery, self._deliveries.forward_to_dead_letters)
        return ForwardMessageToDeadLetterQueueResponse(status=OK.status)

    async def _settle(
        self, delivery: GroupDelivery, how: Callable[[GroupDelivery], Awaitable[R]]
    ) -> R:
        newest, renewed = await self._renewer.settle(delivery)
        found = await how(newest)
        self._renewer.forget(renewed)
        return found


def _handle(text: str) -> MessageHandle:
    try:
        return parse_handle(text)
    except HandleFormatError as error:
        raise StatusError(Code.INTERNAL_SERVER_ERROR, str(error)) from None


def _common(outcomes: Sequence[CallStatus]) -> CallStatus:
    """Return what a call is answered: the code of all its messages, if they have the same."""
    first = outcomes[0]
    if all(outcome.code == first.code for outcome in outcomes):
        return first
    return CallStatus(Code.MULTIPLE_RESULTS, Code.MULTIPLE_RESULTS.name)
