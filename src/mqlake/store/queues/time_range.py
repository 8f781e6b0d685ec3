"""All messages of a topic stored in a range of time, over all queues."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from itertools import takewhile
from typing import NamedTuple

from mqlake.formats import sys_flag
from mqlake.formats.record import Record
from mqlake.store.log.scan import batches, head_at, is_small, walk
from mqlake.store.log.segments import CommitLog
from mqlake.store.queues.queue_view import QueueHeads
from mqlake.store.queues.tag_filter import TagFilter
from mqlake.store.queues.time_search import Boundary, offset_by_time


class TimedMessage(NamedTuple):
    """A message, sorted by store time."""

    store_timestamp: int
    physical_offset: int


class TimeRange(NamedTuple):
    """Store times (ms), both inclusive."""

    begin: int
    end: int

    def has(self, milliseconds: int) -> bool:
        """Return whether a time is in the range."""
        return self.begin <= milliseconds <= self.end


def in_queue(view: QueueHeads, times: TimeRange, tags: TagFilter) -> Iterator[TimedMessage]:
    """Yield the messages of a queue in a range of time, by queue offset."""
    start = offset_by_time(view, times.begin, Boundary.LOWER)
    in_time = takewhile(
        lambda found: found[1].store_timestamp <= times.end, view.heads(start, view.max_offset)
    )
    for entry, head in in_time:
        if times.has(head.store_timestamp) and tags.may_match(view.topic, entry):
            yield TimedMessage(head.store_timestamp, head.physical_offset)


def in_log(
    log: CommitLog, log_end: int, topic: str, queue_ids: Collection[int] | None, times: TimeRange
) -> Iterator[TimedMessage]:
    """Yield the messages of some queues of a topic (None: all) by a scan of the log.

    Only the segments with the range's times are read, in the order of physical offsets: if the
    broker's clock was not set back, that is the order of store times.
    """
    start, end = _stretch(log, log_end, times)
    scan = _walk if is_small(log, start, end) else _scan
    for queue_id, message in scan(log, start, end, topic.encode()):
        if times.has(message.store_timestamp) and (queue_ids is None or queue_id in queue_ids):
            yield message


def _walk(log: CommitLog, start: int, end: int, topic: bytes) -> Iterator[tuple[int, TimedMessage]]:
    for step in walk(log, start, end):
        head = None if step.fault else step.head()
        if head and head.topic == topic and sys_flag.is_queued(head.sys_flag):
            yield head.queue_id, TimedMessage(head.store_timestamp, step.offset)


def _scan(log: CommitLog, start: int, end: int, topic: bytes) -> Iterator[tuple[int, TimedMessage]]:
    import numpy as np

    from mqlake.dispatch.scan import Want

    for batch in batches(log, start, end, Want.EXPORT):
        for number in np.unique(batch.records["queue"]).tolist():
            if number >= 0 and batch.table[number][0] == topic:
                rows = batch.records[batch.records["queue"] == number]
                for row in rows[["store_timestamp", "physical_offset"]].tolist():
                    yield batch.table[number][1], TimedMessage(*row)


def _stretch(log: CommitLog, log_end: int, times: TimeRange) -> tuple[int, int]:
    start, end = log.min_offset, log_end
    for segment in log.segments:
        first = head_at(log, segment.base)
        if first is None:
            continue
        if first.store_timestamp < times.begin:
            start = segment.base
        elif first.store_timestamp > times.end:
            end = min(end, segment.base)
            break
    return start, end


def read(
    log: CommitLog, sources: list[Iterator[TimedMessage]], limit: int, tags: TagFilter
) -> tuple[list[Record], bool]:
    """Return the first `limit` messages of all sources in store-time order, and whether there are
    more.

    Messages with equal times are sorted by physical offset.
    """
    records: list[Record] = []
    for _, offset in heapq.merge(*sources):
        record = log.record(offset)
        if record is not None and tags.matches(record):
            if len(records) == limit:
                return records, True
            records.append(record)
    return records, False
