"""Requests of clients about offsets.

QUERY_CONSUMER_OFFSET, UPDATE_CONSUMER_OFFSET; GET_MAX_OFFSET, GET_MIN_OFFSET,
SEARCH_OFFSET_BY_TIMESTAMP, GET_EARLIEST_MSG_STORETIME.
Upstream: `ConsumerManageProcessor`, `AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.memory import bytes_in_memory
from mqlake.broker.state.offsets.past_end import GroupQueue
from mqlake.broker.state.offsets.resets import awaits_reset
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
from mqlake.protocol.logic_queues.plans import MOST_QUEUES
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.store.config.consumer_offsets import may_be_committed
from mqlake.store.port import Boundary
from mqlake.store.queues.queue_kind import kind_of


class OffsetRequests:
    """Answers requests about offsets, and stores what groups commit."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._reads = state.store.reads
        self._offsets = state.store.config.consumer_offsets

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(
                RequestCode.QUERY_CONSUMER_OFFSET,
                self._query,
                Permission.SUBSCRIBE | Permission.READ,
                QueryConsumerOffsetHeader,
            ),
            Route(
                RequestCode.UPDATE_CONSUMER_OFFSET,
                self._update,
                Permission.SUBSCRIBE | Permission.UPDATE,
                UpdateConsumerOffsetHeader,
            ),
            Route(RequestCode.GET_MAX_OFFSET, self._max, Permission.READ, QueueHeader),
            Route(RequestCode.GET_MIN_OFFSET, self._min, Permission.READ, QueueHeader),
            Route(
                RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
                self._search,
                Permission.READ,
                SearchOffsetHeader,
            ),
            Route(
                RequestCode.GET_EARLIEST_MSG_STORETIME,
                self._earliest,
                Permission.READ,
                QueueHeader,
            ),
        )

    # Offsets of consumer groups

    def _query(self, _peer: Peer, request: Command) -> Command:
        header = request.header(QueryConsumerOffsetHeader)
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

    def _update(self, _peer: Peer, request: Command) -> Command:
        header = request.header(UpdateConsumerOffsetHeader)
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
        if not may_be_committed(offset):
            return response(request, remark=f"Offset {offset} is no queue offset, and is ignored")
        if self._state.past_end.refuses(GroupQueue(group, topic, queue_id), offset):
            return response(request, remark="Offset is past the end of the queue, and is ignored")
        self._offsets.commit(group, topic, queue_id, offset)
        return response(request)

    # Offsets of queues

    def _max(self, _peer: Peer, request: Command) -> Command:
        header = request.header(QueueHeader)
        found = self._reads.queue(header.topic, header.queue_id)
        return response(request, header=OffsetHeader(offset=found.max_offset))

    def _min(self, _peer: Peer, request: Command) -> Command:
        header = request.header(QueueHeader)
        found = self._reads.queue(header.topic, header.queue_id)
        offset = found.min_offset
        if found.max_offset == 0:
            offset = kind_of(self._state.topics.get(header.topic)).min_of_empty
        return response(request, header=OffsetHeader(offset=offset))

    def _search(self, _peer: Peer, request: Command) -> Command:
        header = request.header(SearchOffsetHeader)
        boundary = Boundary[header.boundary_type]
        offset = self._reads.offset_by_time(
            header.topic, header.queue_id, header.timestamp, boundary
        )
        return response(request, header=OffsetHeader(offset=offset))

    def _earliest(self, _peer: Peer, request: Command) -> Command:
        header = request.header(QueueHeader)
        first = self._reads.head_from(header.topic, header.queue_id, 0)
        time = -1 if first is None else first.store_timestamp
        return response(request, header=TimestampHeader(timestamp=time))
