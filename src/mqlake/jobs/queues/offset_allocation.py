"""Give each queue offset to one record: the first of the log that contains it.

RocketMQ drops an entry whose position is already written (`ConsumeQueue.putMessagePositionInfo`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from mqlake.formats import consume_queue
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.jobs.queues.files import MAX_QUEUE_OFFSET, QueueFileWriter
from mqlake.jobs.queues.intervals import Interval, Intervals
from mqlake.jobs.queues.runs import EntryRun, QueueName

MOST_STRETCHES = 1 << 16
"""A queue's offsets are one stretch, or a few if records are lost; more are implausible."""

EXAMPLES = 100
"""The maximum number of refused records that a task reports one by one."""

TWICE = "an earlier record has its queue offset"
FAR = "its queue offset is far from those of the queue's other records"


class Refused(msgspec.Struct, frozen=True):
    """A record whose queue entry was not written: its physical offset, and why."""

    physical_offset: int
    reason: str


class OffsetAllocation:
    """The queue offsets of one task's records; it writes their entries.

    `believable` bounds the plausible queue offsets of some queues; `taken` are those of earlier
    tasks.
    """

    def __init__(
        self,
        files: QueueFileWriter,
        believable: Mapping[QueueName, Interval],
        taken: Mapping[QueueName, Sequence[Interval]],
    ) -> None:
        self._files = files
        self._believable = believable
        self._taken = {queue: Intervals(stretches) for queue, stretches in taken.items()}
        self._own: dict[QueueName, Intervals] = {}
        self.written = 0
        self.refused_count = 0
        self.refused: list[Refused] = []

    def stated(self) -> dict[QueueName, list[Interval]]:
        """Return the plausible queue offsets in the records of this task."""
        return {queue: list(own) for queue, own in self._own.items() if len(own)}

    def allocate(self, run: EntryRun) -> None:
        """Write the entries of a run whose positions are free; refuse the others."""
        queue, first, end = run.queue, run.first, run.end
        own = self._own.get(queue)
        if own is None:
            own = self._own[queue] = Intervals()
        if own.end == first and queue not in self._believable and queue not in self._taken:
            self._write(queue, first, end, run.entries)
            own.add(first, end)
        else:
            self._allocate_some(run, own)

    def _allocate_some(self, run: EntryRun, own: Intervals) -> None:
        queue, first, end, entries = run.queue, run.first, run.end, run.entries
        low, high = self._believable.get(queue, (0, MAX_QUEUE_OFFSET))
        believed = len(own) < MOST_STRETCHES or first <= own.end
        written = Intervals()
        if believed:
            start, stop = max(first, low), min(end, high)
            for a, b in list(self._free(queue, own, start, stop)):
                self._write(queue, a, b, _cut(entries, first, a, b))
                written.add(a, b)
            if start < stop:
                own.add(start, stop)
        for a, b in written.missing(first, end):
            reason = TWICE if believed and low <= a < high else FAR
            self._refuse(_cut(entries, first, a, b), reason)

    def _write(self, queue: QueueName, first: int, end: int, entries: memoryview) -> None:
        self._files.write(queue, first, bytes(entries))
        self.written += end - first

    def _free(self, queue: QueueName, own: Intervals, start: int, stop: int) -> Iterator[Interval]:
        taken = self._taken.get(queue)
        for a, b in own.missing(start, stop):
            yield from taken.missing(a, b) if taken else ((a, b),)

    def _refuse(self, entries: memoryview, reason: str) -> None:
        self.refused_count += len(entries) // ENTRY_SIZE
        for at in range(0, len(entries), ENTRY_SIZE):
            if len(self.refused) >= EXAMPLES:
                break
            offset = consume_queue.decode(entries, at).physical_offset
            self.refused.append(Refused(offset, reason))


def _cut(entries: memoryview, first: int, start: int, end: int) -> memoryview:
    return entries[(start - first) * ENTRY_SIZE : (end - first) * ENTRY_SIZE]
