"""One queue as its consumers should see it: the entries in its files, and those that files lack.

An entry is trusted if its record contains this topic, queue and offset. If it does not, or the
entry was never written, the log between the nearest trusted entries is scanned for the record.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from mqlake.formats.batch_consume_queue import inner_batch
from mqlake.formats.consume_queue import QueueEntry
from mqlake.formats.record import Record
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.index.found_entries import FoundEntries, scan_entries
from mqlake.store.log.scan import Head, head_of, record_of
from mqlake.store.log.segments import CommitLog
from mqlake.store.queues.queue_files import QueueFiles


class QueueHeads(Protocol):
    """What a search by time needs from a queue, whether it is read from files or being written."""

    @property
    def topic(self) -> str: ...

    @property
    def min_offset(self) -> int: ...

    @property
    def max_offset(self) -> int: ...

    def heads(self, start: int, end: int) -> Iterator[tuple[QueueEntry, Head]]:
        """Yield entry and head of the records with queue offsets in [start, end), ascending."""
        ...


class _Scanned(NamedTuple):
    """Queue offsets [start, end) whose entries come from a scan, not from the files."""

    start: int
    end: int
    found: FoundEntries


class QueueView:
    """The entries of one queue that point into [log's first byte, `log_end`).

    Args:
        end_of_files: queue offset after the last trusted entry of the files.
        behind: entries found by scanning, from there on.
        begin: physical offset before which all records of the queue are removed or dead.
        has_batches: whether it is a batch consume queue, so that a record may have several queue
            offsets.
    """

    def __init__(
        self,
        log: CommitLog,
        log_end: int,
        topic: str,
        queue_id: int,
        files: QueueFiles,
        *,
        end_of_files: int,
        behind: FoundEntries,
        begin: int,
        has_batches: bool = False,
    ) -> None:
        self.topic, self.queue_id = topic, queue_id
        self._log, self._log_end, self._begin = log, log_end, begin
        self._files, self._behind = files, behind
        self._end_of_files, self._has_batches = end_of_files, has_batches
        self._first_in_files = min(files.first_at_or_after(begin), self._end_of_files)
        self._scanned: list[_Scanned] = []
        self.min_offset, self.max_offset = self._bounds()
        self._find_before()

    def _bounds(self) -> tuple[int, int]:
        low, high = self._first_in_files, self._end_of_files
        following = self._behind.first_from(high)
        if following is None:
            return low, high
        return (following[0] if low == high else low), self.batch(self._behind.max_offset)[1]

    def _find_before(self) -> None:
        """Search for what was lost before the first entry of the files.

        RocketMQ deletes a queue file only when all its entries point before the log's start, so the
        first remaining file begins with such an entry, or with blank ones.
        """
        first = self._first_in_files
        entry = self._files.entry(first) if 0 < first < self._end_of_files else None
        if entry is None or entry.physical_offset <= self._begin:
            return
        if first == self._files.first or self._files.is_hole(first - 1):
            found = self._scan(self._begin, entry.physical_offset)
            # Records of a damaged log may have any queue offset.
            if len(found) and found.min_offset < first:
                self._scanned.append(_Scanned(found.min_offset, first, found))
                self.min_offset = min(self.min_offset, found.min_offset)

    def batch(self, queue_offset: int) -> tuple[int, int]:
        """Return the queue offsets [first, end) of the batch that begins before an offset.

        If no batch contains the offset: the offset itself, twice.
        """
        found = self._behind.last_before(queue_offset) if self._has_batches else None
        record = found and self.record(*found)
        if found is None or record is None:
            return queue_offset, queue_offset
        first, count = inner_batch(record.properties, found[0])
        is_reached = first + count > queue_offset
        return (first, first + count) if is_reached else (queue_offset, queue_offset)

    def entries(self, start: int) -> Iterator[tuple[int, QueueEntry]]:
        """Yield queue offset and entry from an offset on, ascending.

        Entries from files have not been compared with their records.
        """
        at = max(start, self.min_offset)
        while at < self.max_offset:
            found = self._next(at)
            if isinstance(found, int):
                at = found
            else:
                yield found
                at = found[0] + 1

    def _next(self, at: int) -> tuple[int, QueueEntry] | int:
        """Return the first entry from `at` on, or where to search next."""
        scanned = self._scanned_at(at)
        if scanned is not None:
            found = scanned.found.first_from(at)
            return found if found and found[0] < scanned.end else scanned.end
        if at >= self._end_of_files:
            return self._behind.first_from(at) or self.max_offset
        entry = self._files.entry(at)
        if entry is not None:
            return at, entry
        self._heal(at)
        return at

    def head(self, queue_offset: int, entry: QueueEntry) -> Head | None:
        """Return the head of an entry's record; its body is not checked."""
        head = self._matching_head(queue_offset, entry)
        if head is not None or queue_offset >= self._end_of_files:
            return head
        if self._scanned_at(queue_offset) is not None:
            return None
        right_entry = self._heal(queue_offset).found.get(queue_offset)
        return right_entry and self._matching_head(queue_offset, right_entry)

    def record(self, queue_offset: int, entry: QueueEntry) -> Record | None:
        """Return the good record of an entry."""
        queue = (self.topic, self.queue_id)
        found = record_of(self._log, self._log_end, queue, queue_offset, entry.physical_offset)
        if found is not None:
            return found
        head = self.head(queue_offset, entry)
        return head and self._log.record(head.physical_offset)

    def heads(self, start: int, end: int) -> Iterator[tuple[QueueEntry, Head]]:
        """Yield entry and head of the records with queue offsets in [start, end), ascending."""
        for offset, entry in self.entries(start):
            if offset >= end:
                return
            head = self.head(offset, entry)
            if head is not None:
                yield entry, head

    def _matching_head(self, queue_offset: int, entry: QueueEntry) -> Head | None:
        queue = (self.topic, self.queue_id)
        return head_of(self._log, self._log_end, queue, queue_offset, entry.physical_offset)

    def _scanned_at(self, queue_offset: int) -> _Scanned | None:
        number = bisect_right(self._scanned, queue_offset, key=lambda scanned: scanned.start) - 1
        if number >= 0 and queue_offset < self._scanned[number].end:
            return self._scanned[number]
        return None

    def _heal(self, queue_offset: int) -> _Scanned:
        """Scan for the records of the untrusted entries around `queue_offset`."""
        before, start = self._first_in_files, self._begin
        for offset, entry in self._files.written_before(queue_offset):
            if offset < self._first_in_files:
                break
            head = self._matching_head(offset, entry)
            if head is not None:
                before, start = offset + 1, head.physical_offset + head.size
                break
        after, end = self._end_of_files, self._log_end
        for offset, entry in self._files.written_from(queue_offset + 1):
            if offset >= self._end_of_files:
                break
            if self._matching_head(offset, entry) is not None:
                after, end = offset, entry.physical_offset
                break
        return self._keep(queue_offset, _Scanned(before, after, self._scan(start, end)))

    def _keep(self, queue_offset: int, scanned: _Scanned) -> _Scanned:
        """Store what was scanned around `queue_offset`, without what an earlier scan has covered.

        Ranges that overlapped would hide each other, and be scanned again and again.
        """
        number = bisect_right(self._scanned, queue_offset, key=lambda one: one.start)
        before = self._scanned[number - 1].end if number else scanned.start
        after = self._scanned[number].start if number < len(self._scanned) else scanned.end
        scanned = _Scanned(max(scanned.start, before), min(scanned.end, after), scanned.found)
        self._scanned.insert(number, scanned)
        return scanned

    def _scan(self, start: int, end: int) -> FoundEntries:
        # What the caller scans begins where the queue does: all of it lives.
        found = scan_entries(self._log, Incarnations(), start, end, self.topic, self.queue_id)
        return found.get((self.topic, self.queue_id)) or FoundEntries()
