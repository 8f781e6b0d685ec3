"""PullMessage, which upstream's proxy does not serve."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from mqlake.client.consumer.subscriptions import SelectedTopic
from mqlake.client.message import ReceivedMessage
from mqlake.grpc.call import Call
from mqlake.grpc.messages import Code, PullMessageRequest, PullMessageResponse
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.pull import (
    HAS_SUBSCRIPTION,
    MAY_SUSPEND,
    PullAnswerHeader,
    PullHeader,
)
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.consuming.filters import selected_topic
from mqlake.proxy.consuming.outgoing import converted, decode_stored
from mqlake.proxy.consuming.times import poll_time
from mqlake.proxy.consuming.waiting_polls import WaitingPolls
from mqlake.proxy.errors import OK, CallStatus, StatusError, check
from mqlake.proxy.names import group_of, topic_of
from mqlake.proxy.state import ProxyState

_LATE: Final = 3.0
"""Seconds after the end of its poll time within which a pull must be answered."""
_OUTCOMES: Final = {
    ResponseCode.SUCCESS: OK,
    ResponseCode.PULL_NOT_FOUND: CallStatus(Code.MESSAGE_NOT_FOUND, "no new message"),
    ResponseCode.PULL_RETRY_IMMEDIATELY: CallStatus(Code.MESSAGE_NOT_FOUND, "no match message"),
    ResponseCode.PULL_OFFSET_MOVED: CallStatus(Code.ILLEGAL_OFFSET, "the queue has no such offset"),
}


class _PullOutcome(NamedTuple):
    outcome: CallStatus
    messages: list[ReceivedMessage]
    next_offset: int
    topic: SelectedTopic


class PullCalls:
    """Serves calls that read a queue from an offset."""

    def __init__(self, state: ProxyState, waiting: WaitingPolls) -> None:
        self._state, self._waiting = state, waiting

    async def pull(
        self, call: Call, caller: Caller, request: PullMessageRequest
    ) -> AsyncIterator[PullMessageResponse]:
        """Yield a status, the messages, and the offset of the next pull."""
        try:
            client = await self._state.clients.arriving(caller.client_id)
        except StatusError as error:
            # Upstream's code: clients send their settings again by themselves.
            raise StatusError(Code.INTERNAL_SERVER_ERROR, error.message) from None
        self._state.clients.check_user(caller, client)
        waits = poll_time(self._state.settings, client.settings, call, request)
        with self._waiting.one_more(caller):
            pulled = await self._pulled(caller, request, waits)
        yield PullMessageResponse(status=pulled.outcome.status)
        name = pulled.topic.topic
        for message in pulled.messages:
            found = await converted(message, None, self._state.now(), name)
            yield PullMessageResponse(message=found)
        yield PullMessageResponse(next_offset=pulled.next_offset)

    async def _pulled(self, caller: Caller, call: PullMessageRequest, waits: int) -> _PullOutcome:
        queue = call.message_queue
        topic = selected_topic(topic_of(queue.topic), call.filter_expression)
        most = self._state.settings.grpc_client_consumer_long_polling_batch_size
        header = PullHeader(
            consumer_group=group_of(call.group),
            topic=topic.topic,
            queue_id=queue.id,
            queue_offset=call.offset,
            max_msg_nums=min(call.batch_size, most) if call.batch_size > 0 else most,
            sys_flag=MAY_SUSPEND | HAS_SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=waits,
            sub_version=0,
            subscription=topic.expression,
            expression_type=topic.expression_type,
        )
        answer = await self._state.brokers.poll(
            queue.broker.name,
            request(RequestCode.PULL_MESSAGE, header),
            caller,
            waits / 1000 + _LATE,
            _drop,
        )
        outcome = _OUTCOMES.get(ResponseCode(answer.code)) if answer.code in _OUTCOMES else None
        if outcome is None:
            check(answer)
            raise StatusError(Code.INTERNAL_SERVER_ERROR, f"pull: code {answer.code}")
        body = answer.body if outcome is OK else b""
        stored = decode_stored(body, queue.broker.name)
        messages = [message for message in stored if topic.takes(message)]
        following = answer.header(PullAnswerHeader).next_begin_offset
        return _PullOutcome(outcome, messages, following, topic)


def _drop(_late: Command) -> None:
    """Do nothing: messages that are not pulled stay where they are."""
