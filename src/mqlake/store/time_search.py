"""Find queue offsets by store time (docs/store-reader.md, "Time").

RocketMQ: `ConsumeQueue.getOffsetInQueueByTime`, `BoundaryType`.
"""

from __future__ import annotations

import enum

from mqlake.store.queue_view import QueueView


class Boundary(enum.Enum):
    """Which of the offsets around a time is asked for."""

    LOWER = "lower"
    """The first with store time >= the time; the queue's max offset where there is none."""
    UPPER = "upper"
    """The last with store time <= the time; the queue's min offset where there is none."""


def offset_by_time(view: QueueView, milliseconds: int, boundary: Boundary) -> int:
    """Return a queue offset by store time, exact where store times do not decrease."""
    if boundary is Boundary.LOWER:
        return _first_from(view, milliseconds)
    following = _first_from(view, milliseconds + 1)
    last = _last_before(view, following)
    return view.min_offset if last is None else last


def _first_from(view: QueueView, milliseconds: int) -> int:
    """Return the first queue offset stored at or after a time, the max offset if there is none."""
    low, high = view.min_offset, view.max_offset
    while low < high:
        middle = (low + high) // 2
        found = next(view.heads(middle, high), None)
        if found is None or found[1].store_timestamp >= milliseconds:
            high = middle
        else:
            low = found[1].queue_offset + 1
    found = next(view.heads(low, view.max_offset), None)
    return found[1].queue_offset if found else view.max_offset


def _last_before(view: QueueView, queue_offset: int) -> int | None:
    """Return the last queue offset before another one that has a record."""
    for candidate in range(queue_offset - 1, view.min_offset - 1, -1):
        if view.head(candidate) is not None:
            return candidate
    return None
