"""UpdateOffset, GetOffset and QueryOffset, which upstream's proxy does not serve."""

from __future__ import annotations

from typing import Final

from mqlake.grpc.call import Call
from mqlake.grpc.messages import (
    Code,
    GetOffsetRequest,
    GetOffsetResponse,
    MessageQueue,
    QueryOffsetPolicy,
    QueryOffsetRequest,
    QueryOffsetResponse,
    UpdateOffsetRequest,
    UpdateOffsetResponse,
)
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.header import Header
from mqlake.protocol.headers.offsets import (
    OffsetHeader,
    QueryConsumerOffsetHeader,
    QueueHeader,
    SearchOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.errors import OK, StatusError, check
from mqlake.proxy.names import group_of, topic_of
from mqlake.proxy.state import ProxyState

_PATIENCE: Final = 3.0


class OffsetCalls:
    """Serves calls about offsets of queues and groups."""

    def __init__(self, state: ProxyState) -> None:
        self._brokers = state.brokers

    async def update(
        self, _call: Call, caller: Caller, call: UpdateOffsetRequest
    ) -> UpdateOffsetResponse:
        """Commit the offset of a group in a queue."""
        if call.offset < 0:
            raise StatusError(Code.ILLEGAL_OFFSET, f"offset {call.offset} is below 0")
        queue = call.message_queue
        header = UpdateConsumerOffsetHeader(
            consumer_group=group_of(call.group),
            topic=topic_of(queue.topic),
            queue_id=queue.id,
            commit_offset=call.offset,
        )
        check(await self._ask(queue, caller, RequestCode.UPDATE_CONSUMER_OFFSET, header))
        return UpdateOffsetResponse(status=OK.status)

    async def get(self, _call: Call, caller: Caller, call: GetOffsetRequest) -> GetOffsetResponse:
        """Return the offset that a group has committed in a queue."""
        queue = call.message_queue
        header = QueryConsumerOffsetHeader(
            consumer_group=group_of(call.group),
            topic=topic_of(queue.topic),
            queue_id=queue.id,
            set_zero_if_not_found=False,
        )
        answer = await self._ask(queue, caller, RequestCode.QUERY_CONSUMER_OFFSET, header)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            raise StatusError(Code.OFFSET_NOT_FOUND, "the group has no offset in this queue")
        found = check(answer).header(OffsetHeader).offset
        return GetOffsetResponse(status=OK.status, offset=found)

    async def query(
        self, _call: Call, caller: Caller, call: QueryOffsetRequest
    ) -> QueryOffsetResponse:
        """Return an offset of a queue: its first one, its next one, or the one of a time."""
        queue, topic = call.message_queue, topic_of(call.message_queue.topic)
        header: Header = QueueHeader(topic=topic, queue_id=queue.id)
        if call.query_offset_policy == QueryOffsetPolicy.BEGINNING:
            code = RequestCode.GET_MIN_OFFSET
        elif call.query_offset_policy == QueryOffsetPolicy.END:
            code = RequestCode.GET_MAX_OFFSET
        else:
            if not call.HasField("timestamp"):
                raise StatusError(Code.ILLEGAL_OFFSET, "the timestamp is missing")
            code, time = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, call.timestamp.ToMilliseconds()
            header = SearchOffsetHeader(topic=topic, queue_id=queue.id, timestamp=time)
        answer = check(await self._ask(queue, caller, code, header))
        # RocketMQ reports -1 as the first offset of a batch consume queue without messages.
        found = max(0, answer.header(OffsetHeader).offset)
        return QueryOffsetResponse(status=OK.status, offset=found)

    async def _ask(
        self, queue: MessageQueue, caller: Caller, code: RequestCode, header: Header
    ) -> Command:
        command = request(code, header)
        return await self._brokers.request(queue.broker.name, command, caller, _PATIENCE)
