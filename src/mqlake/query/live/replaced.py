"""Find queues that are not those that a query has read, and where the query continues in them.

A topic that is deleted and created again has the same queues, which start at offset 0 again. So
have the queues of a broker whose store was replaced. A broker that lost messages in a crash assigns
their offsets again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.query.live.brokers import Brokers, Mark, name_of
from mqlake.query.live.position import LivePosition
from mqlake.query.reading.conditions import Interval


class Replaced(NamedTuple):
    """A queue whose messages are not those that the query has read.

    Attributes:
        position: the offset that the query has reached.
        start: the offset of the first message that it has not read; `position` or less.
        end: the queue's end.
    """

    position: int
    start: int
    end: int

    def describe(self, queue: MessageQueue) -> str:
        """Describe the loss for an error or the log."""
        return (
            f"{name_of(queue)} ends at offset {self.end}, and the message before offset "
            f"{self.position} is not the one that this query has read: the topic, or the broker's "
            "store, was deleted and created again, or the broker has lost messages; the query "
            f"continues at offset {self.start}, with {self.end - self.start} messages, and what "
            "it had not read of the old queue is gone"
        )


async def replaced_queues(
    brokers: Brokers, before: LivePosition, spans: Mapping[MessageQueue, Interval]
) -> dict[MessageQueue, Replaced]:
    """Return the queues that were replaced since a position of the query."""
    grown = {
        queue: before.offsets[queue] - 1
        for queue, (low, end) in spans.items()
        if queue in before.marks and low < before.offsets[queue] < end
    }
    marks = await brokers.marks(grown)
    found: dict[MessageQueue, Replaced] = {}
    for queue, span in spans.items():
        position, mark = before.offsets.get(queue), before.marks.get(queue)
        if position is None:
            continue
        if span[1] < position or (queue in marks and marks[queue] != mark):
            start = await _first_unread(brokers, queue, mark, span)
            found[queue] = Replaced(position, min(start, position), span[1])
    return found


async def _first_unread(
    brokers: Brokers, queue: MessageQueue, mark: Mark | None, span: Interval
) -> int:
    """Return the offset of the first message that was stored after the last one that was read.

    Without the mark of that one, this is the queue's first message: a message that is read twice is
    better than a lost one.
    """
    low, end = span
    first = await brokers.mark(queue, low) if low < end else None
    is_newer = first is None or mark is None or _is_newer(first, mark)
    if is_newer or mark is None:
        return low
    return await brokers.first_since(queue, mark.store_timestamp + 1, span)


def _is_newer(one: Mark, other: Mark) -> bool:
    # In the same log, the offset shows it, even if the broker's clock was set back.
    is_later = one.physical_offset > other.physical_offset
    return is_later or one.store_timestamp > other.store_timestamp
