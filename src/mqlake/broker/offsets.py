"""Requests of clients about offsets.

QUERY_CONSUMER_OFFSET, UPDATE_CONSUMER_OFFSET; GET_MAX_OFFSET, GET_MIN_OFFSET,
SEARCH_OFFSET_BY_TIMESTAMP, GET_EARLIEST_MSG_STORETIME.
Upstream: `ConsumerManageProcessor`, `AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from mqlake.broker.logic_queues.offsets import LogicOffsets
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.memory import bytes_in_memory
from mqlake.broker.state.offsets.past_end import GroupQueue
from mqlake.broker.state.offsets.resets import awaits_reset
from mqlake.broker.state.static_topics import LogicQueue
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.offsets import (
    OffsetHeader,
    QueryConsumerOffsetHeader,
    QueueHeader,
    SearchOffsetHeader,
    TimestampHeader,
    UpdateConsumerOffsetHeader,
)
from mqlake.protocol.logic_queue_plans import MOST_QUEUES
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Route
from mqlake.store.port import Boundary

Later = Answer | Coroutine[Any, Any, Answer]
"""An answer, which is returned at once unless another broker must be asked."""

_NO_BATCH = -1
"""Upstream's answer for the min offset of a batch consume queue without a unit."""


class OffsetRequests:
    """Answers requests about offsets, and stores what groups commit."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._reads = state.store.reads
        self._offsets = state.store.config.consumer_offsets
        self._led = state.static_topics.led
        self._logic = LogicOffsets(
            state.static_topics.broker_name, self._reads, self._offsets, state.forwarder
        )

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(
                RequestCode.QUERY_CONSUMER_OFFSET,
                self._query,
                Permission.SUBSCRIBE | Permission.READ,
            ),
            Route(
                RequestCode.UPDATE_CONSUMER_OFFSET,
                self._update,
                Permission.SUBSCRIBE | Permission.UPDATE,
            ),
            Route(RequestCode.GET_MAX_OFFSET, self._max, Permission.READ),
            Route(RequestCode.GET_MIN_OFFSET, self._min, Permission.READ),
            Route(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, self._search, Permission.READ),
            Route(RequestCode.GET_EARLIEST_MSG_STORETIME, self._earliest, Permission.READ),
        )

    # Offsets of consumer groups

    def _query(self, _peer: Peer, request: Command) -> Later:
        header = request.header(QueryConsumerOffsetHeader)
        if (queue := self._led(header.topic, header.queue_id, header.lo)) is None:
            return self._query_here(request, header)
        if len(queue.items) == 1 and queue.leader.logic_offset == 0:
            physical = msgspec.structs.replace(header, queue_id=queue.leader.queue_id)
            return self._query_here(request, physical)
        return self._query_logic(request, header, queue)

    async def _query_logic(
        self, request: Command, header: QueryConsumerOffsetHeader, queue: LogicQueue
    ) -> Command:
        offset = await self._logic.of_group(queue, header)
        if offset is None:
            reason = "Not found, maybe this group consumer boot first"
            raise RemotingError(ResponseCode.QUERY_NOT_FOUND, reason)
        return response(request, header=OffsetHeader(offset=offset))

    def _query_here(self, request: Command, header: QueryConsumerOffsetHeader) -> Command:
        offset = self._offsets.query(header.consumer_group, header.topic, header.queue_id)
        if offset is None:
            if header.set_zero_if_not_found is False:
                reason = "Not found, do not set to zero, maybe this group boot first"
                raise RemotingError(ResponseCode.QUERY_NOT_FOUND, reason)
            if not self._is_young(header.topic, header.queue_id):
                reason = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
                raise RemotingError(ResponseCode.QUERY_NOT_FOUND, reason)
            offset = 0
        return response(request, header=OffsetHeader(offset=offset))

    def _is_young(self, topic: str, queue_id: int) -> bool:
        """Return whether a queue still has its first message, and that is likely to be in memory.

        A new group then begins with it, wherever it asks to begin.
        """
        queue = self._reads.queue(topic, queue_id)
        if queue.min_offset > 0 or queue.max_offset == 0:
            return False
        first = self._reads.head_from(topic, queue_id, 0)
        end = self._state.store.watermarks.confirmed
        in_memory = bytes_in_memory(self._runtime.settings)
        return first is not None and end - first.physical_offset <= in_memory

    def _update(self, _peer: Peer, request: Command) -> Later:
        header = request.header(UpdateConsumerOffsetHeader)
        queue_id = -1 if header.queue_id is None else header.queue_id
        if (queue := self._led(header.topic, queue_id, header.lo)) is not None:
            header, elsewhere = self._logic.to_commit(queue, header)
            if elsewhere is not None:
                return self._commit_elsewhere(request, self._logic.commit_at(elsewhere, header))
        return self._update_here(request, header)

    async def _commit_elsewhere(
        self, request: Command, committed: Coroutine[Any, Any, Command]
    ) -> Command:
        answer = await committed
        return response(request, answer.code, remark=answer.remark)

    def _update_here(self, request: Command, header: UpdateConsumerOffsetHeader) -> Command:
        group, topic = header.consumer_group, header.topic
        if group not in self._state.groups:
            reason = f"Group {group} not exist!"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        if topic not in self._state.topics:
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} not exist!")
        queue_id, offset = header.queue_id, header.commit_offset
        if queue_id is None:
            reason = f"QueueId is null, topic is {topic}"
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        if offset is None:
            reason = f"Offset is null, topic is {topic}"
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        if not 0 <= queue_id < MOST_QUEUES:
            reason = f"QueueId {queue_id} of topic {topic} is not between 0 and {MOST_QUEUES - 1}"
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        if not self._offsets.has(group, topic, queue_id):
            self._state.offset_room.check(group, topic)
        if awaits_reset(self._state, self._runtime, group, topic, queue_id):
            return response(request, remark="Offset has been previously reset")
        if self._state.past_end.refuses(GroupQueue(group, topic, queue_id), offset):
            return response(request, remark="Offset is past the end of the queue, and is ignored")
        self._offsets.commit(group, topic, queue_id, offset)
        return response(request)

    # Offsets of queues

    def _max(self, _peer: Peer, request: Command) -> Later:
        header = request.header(QueueHeader)
        if (queue := self._led(header.topic, header.queue_id, header.lo)) is not None:
            return _offset_later(request, self._logic.end_of(queue))
        found = self._reads.queue(header.topic, header.queue_id)
        return response(request, header=OffsetHeader(offset=found.max_offset))

    def _min(self, _peer: Peer, request: Command) -> Later:
        header = request.header(QueueHeader)
        if (queue := self._led(header.topic, header.queue_id, header.lo)) is not None:
            return _offset_later(request, self._logic.start_of(queue))
        found = self._reads.queue(header.topic, header.queue_id)
        topic, offset = self._state.topics.get(header.topic), found.min_offset
        if found.max_offset == 0 and topic is not None and topic.has_batch_queues:
            offset = _NO_BATCH
        return response(request, header=OffsetHeader(offset=offset))

    def _search(self, _peer: Peer, request: Command) -> Later:
        header = request.header(SearchOffsetHeader)
        if (queue := self._led(header.topic, header.queue_id, header.lo)) is not None:
            return _offset_later(request, self._logic.at_time(queue, header))
        boundary = Boundary[header.boundary_type]
        offset = self._reads.offset_by_time(
            header.topic, header.queue_id, header.timestamp, boundary
        )
        return response(request, header=OffsetHeader(offset=offset))

    def _earliest(self, _peer: Peer, request: Command) -> Later:
        header = request.header(QueueHeader)
        if (queue := self._led(header.topic, header.queue_id, header.lo)) is not None:
            return _time_later(request, self._logic.earliest_time(queue))
        first = self._reads.head_from(header.topic, header.queue_id, 0)
        time = -1 if first is None else first.store_timestamp
        return response(request, header=TimestampHeader(timestamp=time))


async def _offset_later(request: Command, offset: Coroutine[Any, Any, int]) -> Command:
    return response(request, header=OffsetHeader(offset=await offset))


async def _time_later(request: Command, time: Coroutine[Any, Any, int]) -> Command:
    return response(request, header=TimestampHeader(timestamp=await time))
