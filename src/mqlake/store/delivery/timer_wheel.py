"""The waiting timer messages, by the time slot in which they are due.

Upstream: `TimerWheel`, in memory: its content follows from the queue of timer messages.
"""

from __future__ import annotations

from array import array
from heapq import heappop, heappush
from typing import NamedTuple


class NextMessage(NamedTuple):
    """The next message: the start of its slot (ms), and its queue offset."""

    slot: int
    queue_offset: int


class _Slot:
    """The queue offsets that wait for one slot, in the order of arrival."""

    __slots__ = ("at", "offsets")

    def __init__(self) -> None:
        self.offsets = array("q")
        self.at = 0


class TimerWheel:
    """Queue offsets by slot.

    Attributes:
        precision: the length of a slot, in milliseconds.
        count: the number of waiting messages.
    """

    def __init__(self, precision: int) -> None:
        self.precision = precision
        self.count = 0
        self._slots: dict[int, _Slot] = {}
        self._by_time: list[int] = []
        self._by_offset: list[tuple[int, int]] = []

    def slot_of(self, time: int) -> int:
        """Return the start of the slot that contains a time (ms)."""
        return time - time % self.precision

    def add(self, time: int, queue_offset: int) -> None:
        """Let a message wait for the slot of a time (ms)."""
        slot = self.slot_of(time)
        if slot not in self._slots:
            self._slots[slot] = _Slot()
            heappush(self._by_time, slot)
            heappush(self._by_offset, (queue_offset, slot))
        self._slots[slot].offsets.append(queue_offset)
        self.count += 1

    def first(self) -> NextMessage | None:
        """Return the oldest message of the earliest slot, None while no message waits."""
        if not self._by_time:
            return None
        slot = self._by_time[0]
        found = self._slots[slot]
        return NextMessage(slot, found.offsets[found.at])

    def pop(self) -> bool:
        """Remove the message that `first` returns; return whether its slot is empty now."""
        slot = self._by_time[0]
        found = self._slots[slot]
        found.at += 1
        self.count -= 1
        if found.at < len(found.offsets):
            return False
        del self._slots[slot]
        heappop(self._by_time)
        return True

    def discard(self, time: int, queue_offset: int) -> None:
        """Remove a message, wherever it is in its slot."""
        slot = self.slot_of(time)
        found = self._slots.get(slot)
        if found is None or queue_offset not in found.offsets[found.at :]:
            return
        found.offsets.remove(queue_offset)
        self.count -= 1
        if found.at == len(found.offsets):
            del self._slots[slot]
            self._by_time.remove(slot)
            self._by_time.sort()
        else:
            heappush(self._by_offset, (found.offsets[0], slot))

    def least_offset(self) -> int | None:
        """Return a queue offset before which no message waits, None while none waits at all."""
        while self._by_offset:
            offset, slot = self._by_offset[0]
            found = self._slots.get(slot)
            if found is not None and found.offsets[0] == offset:
                return offset
            heappop(self._by_offset)
        return None

    def slots(self) -> list[int]:
        """Return the slots for which messages wait, in any order."""
        return list(self._slots)

    def count_in(self, time: int) -> int:
        """Return how many wait for the slot of a time (ms)."""
        found = self._slots.get(self.slot_of(time))
        return len(found.offsets) - found.at if found else 0

    def count_before(self, time: int) -> int:
        """Return how many wait for slots that begin before a time (ms).

        It looks only at those slots: in the heap, none is above an earlier one.
        """
        heap, found, places = self._by_time, 0, [0]
        while places:
            at = places.pop()
            if at < len(heap) and heap[at] < time:
                found += self.count_in(heap[at])
                places += (2 * at + 1, 2 * at + 2)
        return found

    def all(self) -> list[tuple[int, int]]:
        """Return queue offset and slot of all waiting messages, by queue offset."""
        return sorted(
            (offset, slot)
            for slot, found in self._slots.items()
            for offset in found.offsets[found.at :]
        )
