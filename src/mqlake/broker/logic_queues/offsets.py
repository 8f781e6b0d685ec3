"""Requests about offsets in logic queues.

Upstream: `rewriteRequestForStaticTopic` of `AdminBrokerProcessor` and `ConsumerManageProcessor`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec

from mqlake.broker.logic_queues.rewriting import serve_rewritten
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.static_topics import LogicQueue
from mqlake.formats.config.topic_queue_mapping import LogicQueueMappingItem
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.header import TopicRequest
from mqlake.protocol.headers.offsets import (
    OffsetHeader,
    QueryConsumerOffsetHeader,
    QueueHeader,
    SearchOffsetHeader,
    TimestampHeader,
    UpdateConsumerOffsetHeader,
)
from mqlake.protocol.logic_queues.mapping import (
    Stretches,
    answered_offset,
    is_decided,
    is_ended,
    last_decided,
    logical_offset,
)
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Handler
from mqlake.store.port import Boundary

_LAST_TIME = 2**63 - 2

R = TypeVar("R", bound=TopicRequest)


class LogicOffsets:
    """Answers from this broker's queues, and asks other brokers about theirs."""

    def __init__(self, state: BrokerState) -> None:
        self._broker_name, self._forwarder = state.static_topics.broker_name, state.forwarder
        self._reads, self._offsets = state.store.reads, state.store.config.consumer_offsets

    # Requests

    async def max(self, _peer: Peer, request: Command, queue: LogicQueue, _: Handler) -> Command:
        """Answer GET_MAX_OFFSET."""
        return _offset(request, await self._end_of(queue))

    async def min(self, _peer: Peer, request: Command, queue: LogicQueue, _: Handler) -> Command:
        """Answer GET_MIN_OFFSET."""
        return _offset(request, await self._start_of(queue))

    async def search(self, _peer: Peer, request: Command, queue: LogicQueue, _: Handler) -> Command:
        """Answer SEARCH_OFFSET_BY_TIMESTAMP."""
        return _offset(request, await self._at_time(queue, request.header(SearchOffsetHeader)))

    async def earliest(
        self, _peer: Peer, request: Command, queue: LogicQueue, _: Handler
    ) -> Command:
        """Answer GET_EARLIEST_MSG_STORETIME."""
        time = await self._earliest_time(queue)
        return response(request, header=TimestampHeader(timestamp=time))

    def query(
        self, peer: Peer, request: Command, queue: LogicQueue, serve: Handler
    ) -> Answer | Coroutine[Any, Any, Answer]:
        """Answer QUERY_CONSUMER_OFFSET."""
        header = request.header(QueryConsumerOffsetHeader)
        if len(queue.items) == 1 and queue.leader.logic_offset == 0:
            physical = msgspec.structs.replace(header, queue_id=queue.leader.queue_id, lo=False)
            return serve_rewritten(peer, request, physical, _same, serve)
        return self._query(request, header, queue)

    async def _query(
        self, request: Command, header: QueryConsumerOffsetHeader, queue: LogicQueue
    ) -> Command:
        offset = await self._of_group(queue, header)
        if offset is None:
            reason = "Not found, maybe this group consumer boot first"
            raise RemotingError(ResponseCode.QUERY_NOT_FOUND, reason)
        return _offset(request, offset)

    def update(
        self, peer: Peer, request: Command, queue: LogicQueue, serve: Handler
    ) -> Answer | Coroutine[Any, Any, Answer]:
        """Serve UPDATE_CONSUMER_OFFSET on the broker whose stretch contains the offset."""
        header = request.header(UpdateConsumerOffsetHeader)
        if header.commit_offset is None:
            return serve(peer, request)  # which refuses it
        item, offset = queue.place_of(header.commit_offset)
        physical = msgspec.structs.replace(
            header, queue_id=item.queue_id, commit_offset=offset, lo=False
        )
        if not self._is_here(item):
            return self._commit_at(item, request, physical)
        return serve_rewritten(peer, request, physical, _same, serve)

    async def _commit_at(
        self, item: LogicQueueMappingItem, request: Command, header: UpdateConsumerOffsetHeader
    ) -> Command:
        """Commit an offset on the broker of a stretch; return the broker's answer."""
        code = RequestCode.UPDATE_CONSUMER_OFFSET
        answer = await self._forwarder.ask(item.bname, code, _of_broker(header, item))
        return response(request, answer.code, remark=answer.remark)

    # Logic queues

    async def _end_of(self, queue: LogicQueue) -> int:
        """Return the next offset of a logic queue.

        Raises:
            RemotingError: the broker that leads the queue does not answer.
        """
        item = last_decided(queue.items) or queue.stretch_at(0)
        return logical_offset(item, await self._end(queue, item))

    async def _start_of(self, queue: LogicQueue) -> int:
        """Return the first offset that is still in a logic queue.

        Raises:
            RemotingError: the broker that has the first stretch does not answer.
        """
        item = queue.stretch_at(0)
        return answered_offset(item, await self._start(queue, item))

    async def _at_time(self, queue: LogicQueue, header: SearchOffsetHeader) -> int:
        """Return the offset for a timestamp; see `Boundary`.

        Raises:
            RemotingError: a broker that has a stretch does not answer.
        """
        queue.stretch_at(0)  # Raises if the offsets of the queue are not decided yet.
        stretches = [item for item in queue.items if is_decided(item)]
        if header.boundary_type == "UPPER":
            return await self._last_before(queue, stretches, header)
        for item in stretches[:-1]:
            found, end = await self._search(queue, item, header), await self._end(queue, item)
            if is_ended(item):
                end = min(end, item.end_offset)
            if item.start_offset <= found < end:
                return logical_offset(item, found)
        last = stretches[-1]
        return logical_offset(last, await self._search(queue, last, header))

    async def _last_before(
        self, queue: LogicQueue, stretches: Stretches, header: SearchOffsetHeader
    ) -> int:
        """Return the offset of the last message stored at a time or earlier."""
        later = msgspec.structs.replace(
            header, boundary_type="LOWER", timestamp=min(header.timestamp, _LAST_TIME) + 1
        )
        for item in reversed(stretches):
            found = await self._search(queue, item, later)
            if found > await self._start(queue, item):
                return answered_offset(item, found - 1)
        return await self._start_of(queue)

    async def _earliest_time(self, queue: LogicQueue) -> int:
        """Return the store time of the first message in milliseconds, or -1 if the queue is empty.

        Raises:
            RemotingError: the broker that has the first stretch does not answer.
        """
        item = queue.stretch_at(0)
        if self._is_here(item):
            first = self._reads.head_from(queue.mapping.topic, item.queue_id, 0)
            return -1 if first is None else first.store_timestamp
        header = QueueHeader(topic=queue.mapping.topic, queue_id=item.queue_id)
        answer = await self._ask(item, RequestCode.GET_EARLIEST_MSG_STORETIME, header)
        return answer.header(TimestampHeader).timestamp

    async def _of_group(self, queue: LogicQueue, header: QueryConsumerOffsetHeader) -> int | None:
        """Return a group's offset in a logic queue, from the newest stretch that has one.

        Raises:
            RemotingError: a broker that has a stretch does not answer.
        """
        for item in reversed(queue.items):
            if not is_decided(item):
                continue
            found = await self._group_in(item, header)
            if found is not None and found >= 0:
                return logical_offset(item, found)
        return None

    # Queues of brokers

    def _is_here(self, item: LogicQueueMappingItem) -> bool:
        return item.bname == self._broker_name

    async def _start(self, queue: LogicQueue, item: LogicQueueMappingItem) -> int:
        if self._is_here(item):
            return self._reads.queue(queue.mapping.topic, item.queue_id).min_offset
        return await self._ask_queue(queue, item, RequestCode.GET_MIN_OFFSET)

    async def _end(self, queue: LogicQueue, item: LogicQueueMappingItem) -> int:
        if self._is_here(item):
            return self._reads.queue(queue.mapping.topic, item.queue_id).max_offset
        return await self._ask_queue(queue, item, RequestCode.GET_MAX_OFFSET)

    async def _search(
        self, queue: LogicQueue, item: LogicQueueMappingItem, header: SearchOffsetHeader
    ) -> int:
        if self._is_here(item):
            boundary = Boundary[header.boundary_type]
            topic = queue.mapping.topic
            return self._reads.offset_by_time(topic, item.queue_id, header.timestamp, boundary)
        answer = await self._ask(item, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        return answer.header(OffsetHeader).offset

    async def _group_in(
        self, item: LogicQueueMappingItem, header: QueryConsumerOffsetHeader
    ) -> int | None:
        if self._is_here(item):
            return self._offsets.query(header.consumer_group, header.topic, item.queue_id)
        wanted = msgspec.structs.replace(header, set_zero_if_not_found=False)
        try:
            answer = await self._ask(item, RequestCode.QUERY_CONSUMER_OFFSET, wanted)
        except RemotingError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return answer.header(OffsetHeader).offset

    async def _ask_queue(
        self, queue: LogicQueue, item: LogicQueueMappingItem, code: RequestCode
    ) -> int:
        header = QueueHeader(topic=queue.mapping.topic, queue_id=item.queue_id)
        return (await self._ask(item, code, header)).header(OffsetHeader).offset

    async def _ask(
        self,
        item: LogicQueueMappingItem,
        code: RequestCode,
        header: QueueHeader | SearchOffsetHeader | QueryConsumerOffsetHeader,
    ) -> Command:
        wanted = msgspec.structs.replace(header, queue_id=item.queue_id)
        answer = await self._forwarder.ask(item.bname, code, _of_broker(wanted, item))
        if answer.code != ResponseCode.SUCCESS:
            raise RemotingError(answer.code, answer.remark or f"{item.bname}: code {answer.code}")
        return answer


def _of_broker(header: R, item: LogicQueueMappingItem) -> R:
    """Return the request for the stretch's queue on its broker, instead of the logic queue."""
    return msgspec.structs.replace(header, lo=False, bname=item.bname)


def _offset(request: Command, offset: int) -> Command:
    return response(request, header=OffsetHeader(offset=offset))


def _same(answer: Command) -> Command:
    return answer
