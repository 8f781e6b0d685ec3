"""The consume-queue entries that a scan of the log found, for queues whose files lack them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator

from mqlake.formats import consume_queue, sys_flag
from mqlake.formats.consume_queue import QueueEntry
from mqlake.formats.properties import decode_properties
from mqlake.store.log_scan import SMALL, Queue, batches, is_small, walk
from mqlake.store.segments import CommitLog


class FoundEntries:
    """Entries of one queue, by queue offset: 28 bytes each."""

    def __init__(self) -> None:
        self._queue_offsets = array("q")
        self._physical_offsets = array("q")
        self._sizes = array("i")
        self._tags_codes = array("q")

    def __len__(self) -> int:
        return len(self._queue_offsets)

    @property
    def min_offset(self) -> int:
        """The first queue offset."""
        return self._queue_offsets[0]

    @property
    def max_offset(self) -> int:
        """The last queue offset, plus one."""
        return self._queue_offsets[-1] + 1

    def physical_offsets(self) -> Iterator[int]:
        """Yield the physical offsets, by queue offset."""
        return iter(self._physical_offsets)

    def add(self, queue_offset: int, entry: QueueEntry) -> None:
        """Append an entry; one that does not come behind the others is dropped.

        So does RocketMQ when an offset is dispatched again: `ConsumeQueue.putMessagePositionInfo`.
        """
        if not self._queue_offsets or queue_offset > self._queue_offsets[-1]:
            self._queue_offsets.append(queue_offset)
            self._physical_offsets.append(entry.physical_offset)
            self._sizes.append(entry.size)
            self._tags_codes.append(entry.tags_code)

    def get(self, queue_offset: int) -> QueueEntry | None:
        """Return the entry of a queue offset."""
        found = self.first_from(queue_offset)
        return found[1] if found and found[0] == queue_offset else None

    def first_from(self, queue_offset: int) -> tuple[int, QueueEntry] | None:
        """Return the first queue offset from one on that has an entry, and the entry."""
        at = bisect_left(self._queue_offsets, queue_offset)
        if at == len(self):
            return None
        entry = QueueEntry(self._physical_offsets[at], self._sizes[at], self._tags_codes[at])
        return self._queue_offsets[at], entry


def scan_entries(
    log: CommitLog, start: int, end: int, topic: str | None = None, queue_id: int | None = None
) -> dict[Queue, FoundEntries]:
    """Return the entries of all records that start in [start, end), by queue.

    Only those of one topic, or one queue, where these are given.
    """
    if is_small(log, start, end):
        return _walk_entries(log, start, end, topic, queue_id)
    return _compiled_entries(log, start, end, topic, queue_id)


def _walk_entries(
    log: CommitLog, start: int, end: int, topic: str | None, queue_id: int | None
) -> dict[Queue, FoundEntries]:
    wanted = None if topic is None else topic.encode()
    found: dict[Queue, FoundEntries] = {}
    for step in walk(log, start, end):
        head = None if step.fault else step.head()
        if head is None or not sys_flag.is_queued(head.sys_flag):
            continue
        if wanted not in (None, head.topic) or queue_id not in (None, head.queue_id):
            continue
        name = head.topic.decode()
        code = consume_queue.entry_tags_code(
            name, decode_properties(step.properties()), head.store_timestamp
        )
        entry = QueueEntry(head.physical_offset, head.size, code)
        found.setdefault((name, head.queue_id), FoundEntries()).add(head.queue_offset, entry)
    return found


def _compiled_entries(
    log: CommitLog, start: int, end: int, topic: str | None, queue_id: int | None
) -> dict[Queue, FoundEntries]:
    import numpy as np

    from mqlake.dispatch.scan import Want

    wanted = None if topic is None else topic.encode()
    found: dict[Queue, FoundEntries] = {}
    for batch in batches(log, start, end, Want.EXPORT):
        for number in np.unique(batch.records["queue"]).tolist():
            if number < 0:
                continue
            name, queue = batch.table[number]
            if wanted not in (None, name) or queue_id not in (None, queue):
                continue
            entries = found.setdefault((name.decode(), queue), FoundEntries())
            rows = batch.records[batch.records["queue"] == number]
            for queue_offset, *entry in zip(
                rows["queue_offset"].tolist(),
                rows["physical_offset"].tolist(),
                rows["size"].tolist(),
                rows["tags_code"].tolist(),
                strict=True,
            ):
                entries.add(queue_offset, QueueEntry(*entry))
    return found


def scan_bounds(log: CommitLog, start: int, end: int) -> dict[Queue, tuple[int, int]]:
    """Return the least and the greatest queue offset, by queue, of a long stretch of the log."""
    import numpy as np

    from mqlake.dispatch.scan import Want

    bounds: dict[Queue, tuple[int, int]] = {}
    for batch in batches(log, start, end, Want.EXPORT):
        numbers, offsets = batch.records["queue"], batch.records["queue_offset"]
        least = np.full(len(batch.table), np.iinfo(np.int64).max)
        greatest = np.full(len(batch.table), -1)
        queued = numbers >= 0
        np.minimum.at(least, numbers[queued], offsets[queued])
        np.maximum.at(greatest, numbers[queued], offsets[queued])
        for number in np.flatnonzero(greatest >= 0).tolist():
            name, queue_id = batch.table[number]
            key = (name.decode(), queue_id)
            low, high = bounds.get(key, (least[number], greatest[number]))
            bounds[key] = (int(min(low, least[number])), int(max(high, greatest[number])))
    return bounds


class Undispatched:
    """A stretch of the log whose entries the queue files may lack, asked by queue.

    A short stretch is gone through once. In a long one each question is a scan of its own, so that
    memory is bounded by the answer; the last answers are kept.
    """

    _KEPT = 16

    def __init__(self, log: CommitLog, start: int, end: int, topic: str | None = None) -> None:
        self._log, self.start, self.end, self._topic = log, start, end, topic
        self._all: dict[Queue, FoundEntries] | None = None
        self._bounds: dict[Queue, tuple[int, int]] | None = None
        self._kept: dict[Queue, FoundEntries] = {}

    def bounds(self) -> dict[Queue, tuple[int, int]]:
        """Return the least and the greatest queue offset by queue."""
        if self._bounds is None:
            if self._is_kept():
                self._bounds = {
                    queue: (entries.min_offset, entries.max_offset - 1)
                    for queue, entries in self._entries().items()
                }
            else:
                self._bounds = scan_bounds(self._log, self.start, self.end)
        return self._bounds

    def entries(self, topic: str, queue_id: int) -> FoundEntries:
        """Return the entries of one queue."""
        queue = (topic, queue_id)
        if self._is_kept():
            return self._entries().get(queue) or FoundEntries()
        if queue not in self.bounds():
            return FoundEntries()
        if queue not in self._kept:
            if len(self._kept) >= self._KEPT:
                self._kept.pop(next(iter(self._kept)))
            found = scan_entries(self._log, self.start, self.end, topic, queue_id)
            self._kept[queue] = found.get(queue) or FoundEntries()
        return self._kept[queue]

    def _is_kept(self) -> bool:
        return self._topic is not None or self.end - self.start <= SMALL

    def _entries(self) -> dict[Queue, FoundEntries]:
        if self._all is None:
            self._all = scan_entries(self._log, self.start, self.end, self._topic)
        return self._all
