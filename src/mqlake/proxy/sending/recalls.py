"""RecallMessage (upstream: `RecallMessageActivity`)."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.grpc.call import Call
from mqlake.grpc.messages import (
    Code,
    MessageType,
    RecallMessageRequest,
    RecallMessageResponse,
)
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request as command
from mqlake.protocol.handles.recall import parse_recall_handle
from mqlake.protocol.headers.recall import RecallAnswerHeader, RecallHeader
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.errors import OK, StatusError, check
from mqlake.proxy.names import topic_of
from mqlake.proxy.sending.send import check_may_send
from mqlake.proxy.served import ServedMethod
from mqlake.proxy.state import ProxyState
from mqlake.proxy.topic_queues import MIXED


class RecallCalls:
    """Recalls messages before their delivery time."""

    def __init__(self, state: ProxyState) -> None:
        self._state = state

    def calls(self) -> Sequence[ServedMethod]:
        """Return the handler of each method."""
        return (ServedMethod("RecallMessage", self._recall),)

    async def _recall(
        self, call: Call, caller: Caller, request: RecallMessageRequest
    ) -> RecallMessageResponse:
        topic, brokers = topic_of(request.topic), self._state.brokers
        check_may_send(brokers, topic, caller)
        found = (await brokers.destination(topic)).message_type
        if found not in (MIXED, MessageType.DELAY.name):
            reason = f"only messages of DELAY topics can be recalled: {topic} is for {found}"
            raise StatusError(Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, reason)
        handle = parse_recall_handle(request.recall_handle)
        header = RecallHeader(
            topic=topic, recall_handle=request.recall_handle, producer_group=topic
        )
        asked = command(RequestCode.RECALL_MESSAGE, header)
        answer = await brokers.request(
            handle.broker_name, asked, caller, self._state.patience(call)
        )
        message_id = check(answer).header(RecallAnswerHeader).msg_id
        return RecallMessageResponse(status=OK.status, message_id=message_id)
