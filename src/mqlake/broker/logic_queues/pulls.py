"""Pulls from logic queues: the stretch that they read, and the answer in logic offsets.

Upstream: `PullMessageProcessor.rewriteRequestForStaticTopic`, `rewriteResponseForStaticTopic`.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from mqlake.broker.state.static_topics import LogicQueue
from mqlake.formats.config.topic_queue_mapping import LogicQueueMappingItem
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.headers.pull import COMMITS_OFFSET, MAY_SUSPEND, PullHeader
from mqlake.protocol.logic_queues import (
    first_stretch,
    is_ended,
    last_known_offset,
    logical_offset,
    physical_offset,
    stretch_after,
)


class PullOffsets(NamedTuple):
    """The answer to a pull without messages: its code, and offsets of the queue.

    Attributes:
        code: a `ResponseCode`.
        next, min, max: as in `PullAnswerHeader`.
    """

    code: int
    next: int
    min: int
    max: int


class StretchPull(NamedTuple):
    """A pull from a logic queue.

    Attributes:
        queue: the logic queue.
        item: the stretch that is read.
        logical: the requested offset.
        header: the pull from the queue of the stretch's broker.
    """

    queue: LogicQueue
    item: LogicQueueMappingItem
    logical: int
    header: PullHeader

    @property
    def delta(self) -> int:
        """Return what clients add to the queue offsets of messages."""
        return self.item.logic_offset - self.item.start_offset

    @property
    def has_next(self) -> bool:
        """Return whether reading continues in another stretch after this one."""
        return stretch_after(self.queue.items, self.item) is not None

    def forwarded(self) -> PullHeader:
        """Return the pull for another broker, which answers at once and commits nothing."""
        flags = self.header.sys_flag & ~(MAY_SUSPEND | COMMITS_OFFSET)
        return msgspec.structs.replace(self.header, sys_flag=flags, lo=False, bname=self.item.bname)

    def answered(self, found: PullOffsets, requested: int) -> PullOffsets:
        """Return the answer in offsets of the logic queue.

        Args:
            found: the answer of the broker's queue.
            requested: offset in the broker's queue.
        """
        item = self.item
        if found.code != ResponseCode.SUCCESS:
            found, item = self._moved(found, requested)
        after = found.next
        if is_ended(item) and requested < item.end_offset:
            after = min(after, item.end_offset)
        end = max(logical_offset(item, found.max), last_known_offset(self.queue.items))
        return PullOffsets(
            found.code,
            logical_offset(item, after),
            logical_offset(item, found.min),
            end,
        )

    def _moved(
        self, found: PullOffsets, requested: int
    ) -> tuple[PullOffsets, LogicQueueMappingItem]:
        """Return where reading continues if there are no messages, and in which stretch."""
        item = self.item
        if requested < found.min:
            first = first_stretch(self.queue.items)
            is_first = first is not None and first.gen == item.gen
            # The messages before are removed: of the whole queue, or only of this stretch.
            code = (
                ResponseCode.PULL_OFFSET_MOVED if is_first else ResponseCode.PULL_RETRY_IMMEDIATELY
            )
            return found._replace(code=code, next=found.min), item
        if requested < found.max:
            return found, item
        after = stretch_after(self.queue.items, item)
        if after is not None:
            start = after.start_offset
            return PullOffsets(ResponseCode.PULL_RETRY_IMMEDIATELY, start, start, start), after
        if found.code == ResponseCode.PULL_OFFSET_MOVED:
            found = found._replace(next=found.max)
        return found, item


def pull_from(queue: LogicQueue, header: PullHeader) -> StretchPull:
    """Return the pull from the stretch with the requested offset.

    Raises:
        RemotingError: no offset of the queue is decided yet.
    """
    logical = header.queue_offset
    item = queue.stretch_at(logical)
    at, most = physical_offset(item, logical), header.max_msg_nums
    if is_ended(item) and at < item.end_offset:
        most = min(most, item.end_offset - at)
    physical = msgspec.structs.replace(
        header, queue_id=item.queue_id, queue_offset=at, max_msg_nums=most
    )
    return StretchPull(queue, item, logical, physical)
