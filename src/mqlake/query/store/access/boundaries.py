"""Find where records start, with consume queue entries as proof.

A record's body may imitate a record, so a scan may begin only where a record certainly starts: at a
segment's first byte, or where a queue's entry names a record that contains this queue and offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from mqlake.formats.consume_queue import QueueEntry
from mqlake.query.store.place import OpenStore
from mqlake.store.log.scan import Head, Queue, head_at, head_of
from mqlake.store.queues.queue_files import QueueFiles, queue_ids, topic_names

_PILOTS = 4
"""Queues that are searched for boundaries: those with the most entries."""

CLOCK_STEP = 60_000
"""Milliseconds by which a broker's clock may have gone back without a message being missed."""


class Boundaries:
    """The boundaries in [log's first byte, `end`); physical offsets, bytes."""

    def __init__(self, store: OpenStore, end: int) -> None:
        self._store, self.end = store, end
        self.start = store.log.min_offset

    @cached_property
    def queues(self) -> dict[Queue, QueueFiles]:
        """The files of all queues."""
        directory = self._store.directory
        return {
            (topic, queue_id): QueueFiles(directory, topic, queue_id)
            for topic in topic_names(directory)
            for queue_id in queue_ids(directory, topic)
        }

    @cached_property
    def _pilots(self) -> list[tuple[Queue, QueueFiles]]:
        by_count = sorted(self.queues.items(), key=lambda item: item[1].first - item[1].end)
        return [(queue, files) for queue, files in by_count[:_PILOTS] if files.files]

    def at_or_before(self, position: int) -> int:
        """Return where a record starts, at a position or shortly before it."""
        segment = self._store.log.segment_at(position)
        found = segment.base if segment else self.start
        for queue, files in self._pilots:
            behind = files.first_at_or_after(position + 1)
            heads = self._heads(queue, files.written_before(behind))
            before = (head.physical_offset for head in heads if head.physical_offset <= position)
            found = max(found, next(before, found))
        return found

    def at_or_after(self, position: int) -> int | None:
        """Return the next start of a record or segment, or the log's end; None if it is far
        away.
        """
        if position >= self.end:
            return self.end
        segment = self._store.log.segment_at(position)
        found: list[int] = []
        for queue, files in self._pilots:
            heads = self._heads(queue, files.written_from(files.first_at_or_after(position)))
            # A damaged entry can mislead the search.
            ahead = (head.physical_offset for head in heads if head.physical_offset >= position)
            found += islice(ahead, 1)
        if segment is not None and segment.end < self.end:
            found.append(segment.end)
        return min(found, default=None)

    def stored_in(self, begin: int, end: int) -> tuple[int, int]:
        """Return a stretch that contains all messages of a range of store times (ms)."""
        first, last = self.start, self.end
        for segment in self._store.log.segments:
            time = self._first_time(segment.base)
            if time is None:
                continue
            if time < begin - CLOCK_STEP:
                first = max(first, segment.base)
            elif time > end + CLOCK_STEP:
                last = min(last, segment.base)
                break
        for queue, files in self._pilots[:1]:
            before, _ = self._parted(queue, files, begin - CLOCK_STEP)
            _, behind = self._parted(queue, files, end + CLOCK_STEP + 1)
            first, last = max(first, before or first), min(last, behind or last)
        return first, max(first, last)

    def at_offset(self, queue: Queue, queue_offset: int) -> int | None:
        """Return the position of the record with a queue offset, None if no entry names it."""
        files = self.queues.get(queue)
        entry = files.entry(queue_offset) if files else None
        if entry is None:
            return None
        head = head_of(self._store.log, self.end, queue, queue_offset, entry.physical_offset)
        return head.physical_offset if head else None

    def _first_time(self, base: int) -> int | None:
        head = head_at(self._store.log, base)
        return head.store_timestamp if head else None

    def _parted(self, queue: Queue, files: QueueFiles, time: int) -> tuple[int | None, int | None]:
        """Return where the last record from before a time starts, and the first from then on."""
        before = behind = None
        low, high = files.first_at_or_after(self.start), files.end
        while low < high:
            middle = (low + high) // 2
            head = next(self._heads(queue, files.written_from(middle)), None)
            if head is None or head.queue_offset >= high:
                high = middle
            elif head.store_timestamp < time:
                before, low = head.physical_offset, head.queue_offset + 1
            else:
                behind, high = head.physical_offset, middle
        return before, behind

    def _heads(self, queue: Queue, entries: Iterator[tuple[int, QueueEntry]]) -> Iterator[Head]:
        """Yield the records of correct entries; give up after a few wrong ones."""
        lies = 0
        for offset, entry in entries:
            head = head_of(self._store.log, self.end, queue, offset, entry.physical_offset)
            if head is not None:
                yield head
            else:
                lies += 1
                if lies > 64:
                    return
