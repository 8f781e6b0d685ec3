"""The queue offset of the next message of each queue.

Upstream: `QueueOffsetOperator`.
"""

from __future__ import annotations


class QueueOffsets:
    """Next queue offsets by topic and queue id; 0 for a queue without messages.

    Attributes:
        table: (topic, queue id) → next queue offset, for the append itself.
    """

    def __init__(self) -> None:
        self.table: dict[tuple[str, int], int] = {}

    def next(self, topic: str, queue_id: int) -> int:
        """Return the queue offset of the queue's next message."""
        return self.table.get((topic, queue_id), 0)

    def set(self, topic: str, queue_id: int, offset: int) -> None:
        """Set the queue offset of the queue's next message."""
        self.table[topic, queue_id] = offset

    def topics(self) -> list[str]:
        """Return the topics that have a queue, sorted."""
        return sorted({topic for topic, _ in self.table})

    def remove(self, topic: str, queue_id: int) -> None:
        """Forget a queue."""
        self.table.pop((topic, queue_id), None)
