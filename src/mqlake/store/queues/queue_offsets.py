"""The queue offset of the next message of each queue.

Upstream: `QueueOffsetOperator`.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping

import numpy as np

from mqlake.dispatch.batch import Longs

_FIRST = 64
_NO_MESSAGES = -1

Queue = tuple[str, int]
"""A topic and a queue id."""


class QueueOffsets(Mapping[Queue, int]):
    """Next queue offsets by queue, of the queues that have had messages.

    They are in an array, which kernels that append messages read and change.

    Attributes:
        ends: i8[n], the next queue offset of each numbered queue; -1 for one without messages. It
            is replaced by a longer array if there are more queues.
    """

    def __init__(self) -> None:
        self._numbers: dict[Queue, int] = {}
        self._unused: list[int] = []
        self._are_in_order = True
        self._on_remove: list[Callable[[], None]] = []
        self._use(np.full(_FIRST, _NO_MESSAGES, np.int64))

    def _use(self, ends: Longs) -> None:
        self.ends = ends
        self._ends: memoryview[int] = ends.data

    def on_remove(self, forget: Callable[[], None]) -> None:
        """Call a function when a number no longer belongs to its queue."""
        self._on_remove.append(forget)

    def number(self, queue: Queue) -> int:
        """Return the number of a queue."""
        number = self._numbers.get(queue)
        if number is None:
            number = self._unused.pop() if self._unused else len(self._numbers)
            if number == len(self.ends):
                more = np.full(number, _NO_MESSAGES, np.int64)
                self._use(np.concatenate([self.ends, more]))
            self._numbers[queue] = number
        return number

    def next(self, topic: str, queue_id: int) -> int:
        """Return the queue offset of the queue's next message; 0 if it has had none."""
        number = self._numbers.get((topic, queue_id))
        return 0 if number is None else max(self._ends[number], 0)

    def set(self, topic: str, queue_id: int, offset: int) -> None:
        """Set the queue offset of the queue's next message."""
        number = self.number((topic, queue_id))
        self._ends[number] = offset

    def topics(self) -> list[str]:
        """Return the topics that have a queue, sorted."""
        return sorted({topic for topic, _ in self})

    def remove(self, topic: str, queue_id: int) -> None:
        """Forget a queue."""
        number = self._numbers.pop((topic, queue_id), None)
        if number is not None:
            self._ends[number] = _NO_MESSAGES
            self._unused.append(number)
            self._are_in_order = False
            for forget in self._on_remove:
                forget()

    def items(self) -> ItemsView[Queue, int]:
        """Return the queues and their offsets as they are now: a broker may have 100,000."""
        count = len(self._numbers)
        if self._are_in_order:
            ends = self.ends[:count]
        else:
            ends = self.ends[np.fromiter(self._numbers.values(), np.int64, count)]
        found = dict(zip(self._numbers, ends.tolist(), strict=True))
        if (ends == _NO_MESSAGES).any():
            found = {queue: end for queue, end in found.items() if end != _NO_MESSAGES}
        return found.items()

    def __getitem__(self, queue: Queue) -> int:
        end = self._ends[self._numbers[queue]]
        if end == _NO_MESSAGES:
            raise KeyError(queue)
        return end

    def __iter__(self) -> Iterator[Queue]:
        ends = self._ends
        return (queue for queue, number in self._numbers.items() if ends[number] != _NO_MESSAGES)

    def __len__(self) -> int:
        return sum(1 for _ in self)
