"""Consume queue entries that a scan of the log found, for queues whose files lack them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from mqlake.formats import consume_queue, sys_flag
from mqlake.formats.consume_queue import QueueEntry
from mqlake.formats.properties import decode_properties
from mqlake.store.incarnations.restarts import Position, RestartTracer, befores
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.log.scan import SMALL, Queue, batches, is_small, walk
from mqlake.store.log.segments import CommitLog

if TYPE_CHECKING:
    from mqlake.dispatch.columns import RecordColumns


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

    def add(self, queue_offset: int, entry: QueueEntry) -> None:
        """Append an entry; an entry that does not follow the others is dropped.

        RocketMQ does the same when an offset is dispatched again:
        `ConsumeQueue.putMessagePositionInfo`.
        """
        if not self._queue_offsets or queue_offset > self._queue_offsets[-1]:
            self._queue_offsets.append(queue_offset)
            self._physical_offsets.append(entry.physical_offset)
            self._sizes.append(entry.size)
            self._tags_codes.append(entry.tags_code)

    def add_rows(self, rows: RecordColumns) -> None:
        """Append the entries of a scan's records, which are all of this queue."""
        offsets = rows["queue_offset"]
        last = self._queue_offsets[-1] if self._queue_offsets else -1
        if offsets[0] > last and bool((offsets[1:] > offsets[:-1]).all()):
            self._queue_offsets.frombytes(offsets.tobytes())
            self._physical_offsets.frombytes(rows["physical_offset"].tobytes())
            self._sizes.frombytes(rows["size"].tobytes())
            self._tags_codes.frombytes(rows["tags_code"].tobytes())
            return
        names = ["queue_offset", "physical_offset", "size", "tags_code"]
        for queue_offset, *entry in rows[names].tolist():
            self.add(queue_offset, QueueEntry(*entry))

    def extend(self, others: FoundEntries) -> None:
        """Append later entries, as `add` does."""
        for at in range(len(others)):
            self.add(*others._entry(at))

    def trace(self, queue: Queue, tracer: RestartTracer) -> None:
        """Show the entries, of which there are some, to a tracer."""
        at, offsets = self._physical_offsets, self._queue_offsets
        end = offsets[1] if len(offsets) > 1 else offsets[0] + 1
        tracer.see(queue, Position(at[0], offsets[0]), end, Position(at[-1], offsets[-1]))

    def is_from(self, physical_offset: int) -> bool:
        """Return whether there are entries, and all point at or after a physical offset."""
        return bool(self._physical_offsets) and self._physical_offsets[0] >= physical_offset

    def get(self, queue_offset: int) -> QueueEntry | None:
        """Return the entry of a queue offset."""
        found = self.first_from(queue_offset)
        return found[1] if found and found[0] == queue_offset else None

    def first_from(self, queue_offset: int) -> tuple[int, QueueEntry] | None:
        """Return the first entry at or after a queue offset, with its queue offset."""
        at = bisect_left(self._queue_offsets, queue_offset)
        return None if at == len(self) else self._entry(at)

    def last_before(self, queue_offset: int) -> tuple[int, QueueEntry] | None:
        """Return the last entry before a queue offset, with its queue offset."""
        at = bisect_left(self._queue_offsets, queue_offset)
        return self._entry(at - 1) if at else None

    def _entry(self, at: int) -> tuple[int, QueueEntry]:
        entry = QueueEntry(self._physical_offsets[at], self._sizes[at], self._tags_codes[at])
        return self._queue_offsets[at], entry


Lives = dict[Queue, list[FoundEntries]]
"""The entries of each queue, divided before each record with queue offset 0."""


def living(lives: Lives) -> dict[Queue, FoundEntries]:
    """Return the entries of each queue without those of topics that were deleted and created again.

    Of a record that is no restart although it has queue offset 0, the earlier entries stay.
    """
    tracer = RestartTracer()
    for queue, parts in lives.items() if any(len(each) > 1 for each in lives.values()) else ():
        for part in parts:
            if len(part):
                part.trace(queue, tracer)
    begins = befores(tracer.traces)
    found: dict[Queue, FoundEntries] = {}
    for queue, parts in lives.items():
        kept = [part for part in parts if part.is_from(begins.get(queue[0], 0))]
        for part in kept[1:]:
            kept[0].extend(part)
        if kept:
            found[queue] = kept[0]
    return found


def scan_entries(
    log: CommitLog,
    incarnations: Incarnations,
    start: int,
    end: int,
    topic: str | None = None,
    queue_id: int | None = None,
) -> dict[Queue, FoundEntries]:
    """Return the entries of all living records that start in [start, end), by queue.

    Only those of one topic, or one queue, if given. The records of a topic that begins again in the
    stretch are dead before that.
    """
    scan = _walk_entries if is_small(log, start, end) else _compiled_entries
    return living(scan(log, incarnations, start, end, topic, queue_id))


def _walk_entries(
    log: CommitLog,
    incarnations: Incarnations,
    start: int,
    end: int,
    topic: str | None,
    queue_id: int | None,
) -> Lives:
    wanted = None if topic is None else topic.encode()
    found: Lives = {}
    for step in walk(log, start, end):
        head = None if step.fault else step.head()
        if head is None or not sys_flag.is_queued(head.sys_flag):
            continue
        if wanted not in (None, head.topic) or queue_id not in (None, head.queue_id):
            continue
        name = head.topic.decode()
        if incarnations.is_dead(name, head.physical_offset):
            continue
        code = consume_queue.entry_tags_code(
            name, decode_properties(step.properties()), head.store_timestamp
        )
        entry = QueueEntry(head.physical_offset, head.size, code)
        lives = found.setdefault((name, head.queue_id), [FoundEntries()])
        if head.queue_offset == 0 and len(lives[-1]):
            lives.append(FoundEntries())
        lives[-1].add(head.queue_offset, entry)
    return found


def _compiled_entries(
    log: CommitLog,
    incarnations: Incarnations,
    start: int,
    end: int,
    topic: str | None,
    queue_id: int | None,
) -> Lives:
    import numpy as np

    from mqlake.dispatch.scan import Want

    wanted = None if topic is None else topic.encode()
    found: Lives = {}
    for batch in batches(log, start, end, Want.EXPORT):
        for number in np.unique(batch.records["queue"]).tolist():
            if number < 0:
                continue
            name, queue = batch.table[number]
            if wanted not in (None, name) or queue_id not in (None, queue):
                continue
            rows = batch.records[batch.records["queue"] == number]
            rows = rows[rows["physical_offset"] >= incarnations.before(name.decode())]
            lives = found.setdefault((name.decode(), queue), [FoundEntries()])
            begins = np.flatnonzero(rows["queue_offset"] == 0).tolist()
            for first, last in pairwise([0, *begins, len(rows)]):
                if first < last:
                    if rows["queue_offset"][first] == 0 and len(lives[-1]):
                        lives.append(FoundEntries())
                    lives[-1].add_rows(rows[first:last])
    return found


class Bounds(NamedTuple):
    """What a stretch of the log has of one queue: least and greatest queue offset, and the number
    of records.
    """

    least: int
    greatest: int
    records: int


def scan_bounds(
    log: CommitLog, incarnations: Incarnations, start: int, end: int
) -> dict[Queue, Bounds]:
    """Return the bounds of each queue that has living records in a long stretch of the log."""
    import numpy as np

    from mqlake.dispatch.scan import Want

    found: dict[Queue, Bounds] = {}
    for batch in batches(log, start, end, Want.EXPORT):
        queued = batch.records[batch.records["queue"] >= 0]
        if incarnations:
            names = (batch.table[number][0].decode() for number in range(len(batch.table)))
            befores = np.array([incarnations.before(name) for name in names], np.int64)
            queued = queued[queued["physical_offset"] >= befores[queued["queue"]]]
        numbers, offsets = queued["queue"], queued["queue_offset"]
        least = np.full(len(batch.table), np.iinfo(np.int64).max)
        greatest = np.full(len(batch.table), np.iinfo(np.int64).min)
        np.minimum.at(least, numbers, offsets)
        np.maximum.at(greatest, numbers, offsets)
        counts = np.bincount(numbers, minlength=len(batch.table))
        for number in np.flatnonzero(counts).tolist():
            name, queue_id = batch.table[number]
            one = Bounds(int(least[number]), int(greatest[number]), int(counts[number]))
            queue = (name.decode(), queue_id)
            found[queue] = _join(found[queue], one) if queue in found else one
    return found


def _join(one: Bounds, other: Bounds) -> Bounds:
    return Bounds(
        min(one.least, other.least),
        max(one.greatest, other.greatest),
        one.records + other.records,
    )


class Undispatched:
    """A stretch of the log whose entries the queue files may lack, queried by queue.

    Without a topic: if the stretch has more entries than are worth the memory, each query is a
    separate scan, and the last answers are cached.
    """

    _MOST_ENTRIES = 4_000_000
    _KEPT = 16

    def __init__(
        self,
        log: CommitLog,
        incarnations: Incarnations,
        start: int,
        end: int,
        topic: str | None = None,
    ) -> None:
        self._log, self.start, self.end, self._topic = log, start, end, topic
        self._incarnations = incarnations
        self._kept: dict[Queue, FoundEntries] = {}

    @cached_property
    def bounds(self) -> dict[Queue, Bounds]:
        """The bounds of each queue that has records in the stretch."""
        if self._topic is None and self.end - self.start > SMALL:
            return scan_bounds(self._log, self._incarnations, self.start, self.end)
        return {
            queue: Bounds(entries.min_offset, entries.max_offset - 1, len(entries))
            for queue, entries in self._all.items()
        }

    @cached_property
    def is_kept(self) -> bool:
        """Return whether all entries are, or can be, held in memory."""
        if self._topic is not None or self.end - self.start <= SMALL:
            return True
        return sum(bounds.records for bounds in self.bounds.values()) <= self._MOST_ENTRIES

    def entries(self, topic: str, queue_id: int) -> FoundEntries:
        """Return the entries of one queue."""
        queue = (topic, queue_id)
        if self.is_kept:
            return self._all.get(queue) or FoundEntries()
        if queue not in self.bounds:
            return FoundEntries()
        if queue not in self._kept:
            if len(self._kept) >= self._KEPT:
                self._kept.pop(next(iter(self._kept)))
            stretch = (self._log, self._incarnations, self.start, self.end)
            found = scan_entries(*stretch, topic, queue_id)
            self._kept[queue] = found.get(queue) or FoundEntries()
        return self._kept[queue]

    @cached_property
    def _all(self) -> dict[Queue, FoundEntries]:
        return scan_entries(self._log, self._incarnations, self.start, self.end, self._topic)
