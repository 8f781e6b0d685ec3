"""Find queue offsets by store time (docs/store-reader.md, "Time").

Upstream: `ConsumeQueue.getOffsetInQueueByTime`, `BoundaryType`.
"""

from __future__ import annotations

import enum

from mqlake.store.queues.queue_view import QueueHeads


class Boundary(enum.Enum):
    """Which of the two offsets around a time to return."""

    LOWER = "lower"
    """The first with store time >= the time; the queue's max offset without one."""
    UPPER = "upper"
    """The last with store time <= the time; the queue's min offset without one."""
    NEAREST = "nearest"
    """The nearer one of the two, the earlier one if both are equally near.

    The answer of RocketMQ 4.9."""


def offset_by_time(view: QueueHeads, milliseconds: int, boundary: Boundary) -> int:
    """Return a queue offset by store time, which is exact if store times do not decrease."""
    if boundary is Boundary.UPPER:
        last, _ = _part(view, milliseconds + 1)
        return view.min_offset if last is None else last
    before, lower = _part(view, milliseconds)
    if boundary is Boundary.LOWER or before is None:
        return lower
    after = next(view.heads(lower, view.max_offset), None)
    if after is None:
        return before
    time_before = next(view.heads(before, lower))[1].store_timestamp
    is_earlier_nearer = milliseconds - time_before <= after[1].store_timestamp - milliseconds
    return before if is_earlier_nearer else lower


def _part(view: QueueHeads, milliseconds: int) -> tuple[int | None, int]:
    """Return the last queue offset stored before a time, and the first one stored from it on.

    Without such messages: None, and the queue's max offset.
    """
    last: int | None = None
    low, high = view.min_offset, view.max_offset
    while low < high:
        middle = (low + high) // 2
        found = next(view.heads(middle, high), None)
        if found is None or found[1].store_timestamp >= milliseconds:
            high = middle
        else:
            last = found[1].queue_offset
            low = last + 1
    found = next(view.heads(low, view.max_offset), None)
    return last, found[1].queue_offset if found else view.max_offset
