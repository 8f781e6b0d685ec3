"""Read messages of a queue from an offset on.

Upstream: `DefaultMessageStore.getMessage`.
"""

from __future__ import annotations

from mqlake.formats.record import Record
from mqlake.store.queues.queue_view import QueueView
from mqlake.store.queues.tag_filter import TagFilter
from mqlake.store.results import GetResult, Status


def get(view: QueueView, offset: int, limit: int, tags: TagFilter) -> GetResult:
    """Return up to `limit` messages with queue offsets from `offset` on.

    An inner batch counts as one message; the one that contains `offset` is the first.

    Statuses and next offset are RocketMQ's. RocketMQ also ends an answer at a file's end, at 32
    messages or 256 KiB, and after 800 entries; this function does not.
    """
    low, high = view.min_offset, view.max_offset
    if high == 0:
        return GetResult(Status.NO_MESSAGE_IN_QUEUE, 0, low, high, [])
    if offset < low:
        return GetResult(Status.OFFSET_TOO_SMALL, low, low, high, [])
    if offset == high:
        return GetResult(Status.OFFSET_OVERFLOW_ONE, offset, low, high, [])
    if offset > high:
        return GetResult(Status.OFFSET_OVERFLOW_BADLY, high, low, high, [])
    records: list[Record] = []
    status, following = Status.NO_MATCHED_MESSAGE, high
    for at, entry in view.entries(view.batch(offset)[0]):
        if len(records) == limit:
            following = at
            break
        if tags.may_match(view.topic, entry):
            record = view.record(at, entry)
            if record is None:
                status = Status.MESSAGE_WAS_REMOVING
            elif tags.matches(record):
                records.append(record)
    status = Status.FOUND if records else status
    return GetResult(status, following, low, high, records)
