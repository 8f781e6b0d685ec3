"""Requests about offsets in logic queues.

Upstream: `rewriteRequestForStaticTopic` of `AdminBrokerProcessor` and `ConsumerManageProcessor`.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from mqlake.broker.state.forwarding import Forwarder
from mqlake.broker.state.static_topics import LogicQueue
from mqlake.formats.config.topic_queue_mapping import LogicQueueMappingItem
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
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
from mqlake.protocol.logic_queues import (
    Stretches,
    answered_offset,
    is_decided,
    is_ended,
    last_decided,
    logical_offset,
    physical_offset,
)
from mqlake.store.config.consumer_offsets import ConsumerOffsetTable
from mqlake.store.port import Boundary, LiveReads

_LAST_TIME = 2**63 - 2

R = TypeVar("R", bound=TopicRequest)


class LogicOffsets:
    """Answers from this broker's queues, and asks other brokers about theirs."""

    def __init__(
        self, broker_name: str, reads: LiveReads, offsets: ConsumerOffsetTable, forwarder: Forwarder
    ) -> None:
        self._broker_name, self._reads, self._offsets = broker_name, reads, offsets
        self._forwarder = forwarder

    async def end_of(self, queue: LogicQueue) -> int:
        """Return the next offset of a logic queue.

        Raises:
            RemotingError: the broker that leads the queue does not answer.
        """
        item = last_decided(queue.items) or queue.stretch_at(0)
        return logical_offset(item, await self._end(queue, item))

    async def start_of(self, queue: LogicQueue) -> int:
        """Return the first offset that is still in a logic queue.

        Raises:
            RemotingError: the broker that has the first stretch does not answer.
        """
        item = queue.stretch_at(0)
        return answered_offset(item, await self._start(queue, item))

    async def at_time(self, queue: LogicQueue, header: SearchOffsetHeader) -> int:
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
        return await self.start_of(queue)

    async def earliest_time(self, queue: LogicQueue) -> int:
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

    async def of_group(self, queue: LogicQueue, header: QueryConsumerOffsetHeader) -> int | None:
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

    def to_commit(
        self, queue: LogicQueue, header: UpdateConsumerOffsetHeader
    ) -> tuple[UpdateConsumerOffsetHeader, LogicQueueMappingItem | None]:
        """Return a commit for a broker's queue, and its stretch if that is on another broker."""
        offset = header.commit_offset
        if offset is None:
            return header, None
        item, at = self.place_of(queue, offset)
        physical = msgspec.structs.replace(header, queue_id=item.queue_id, commit_offset=at)
        return physical, None if self._is_here(item) else item

    def place_of(self, queue: LogicQueue, logical: int) -> tuple[LogicQueueMappingItem, int]:
        """Return the stretch of an offset to commit, and the offset in the broker's queue."""
        item = queue.stretch_at(logical)
        return item, max(item.start_offset, physical_offset(item, logical))

    async def commit_at(
        self, item: LogicQueueMappingItem, header: UpdateConsumerOffsetHeader
    ) -> Command:
        """Commit an offset on the broker of a stretch; return the broker's answer.

        Raises:
            RemotingError: the broker does not answer.
        """
        return await self._forwarder.ask(
            item.bname, RequestCode.UPDATE_CONSUMER_OFFSET, _of_broker(header, item)
        )

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
