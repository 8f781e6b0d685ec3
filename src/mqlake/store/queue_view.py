"""One queue as its consumers should see it: what its files hold, and what they lack.

An entry is believed when the record it points at names this topic, queue and offset. Where it does
not, or was never written, the log between the nearest entries that do is scanned for the record.
"""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.formats.consume_queue import QueueEntry
from mqlake.formats.record import Record
from mqlake.store.found_entries import FoundEntries, scan_entries
from mqlake.store.log_scan import Head, head_at
from mqlake.store.queue_files import QueueFiles
from mqlake.store.segments import CommitLog


class QueueView:
    """The entries of one queue that point into [log's first byte, `log_end`).

    Args:
        behind: entries found by scanning, which take over where the files end.
    """

    def __init__(
        self,
        log: CommitLog,
        log_end: int,
        topic: str,
        queue_id: int,
        files: QueueFiles,
        behind: FoundEntries,
    ) -> None:
        self.topic, self.queue_id = topic, queue_id
        self._name = topic.encode()
        self._log, self._log_end = log, log_end
        self._files, self._behind = files, behind
        self._healed: dict[int, QueueEntry | None] = {}
        self._first_in_files = files.first_at_or_after(log.min_offset)
        self._end_of_files = min(files.end, files.first_at_or_after(log_end))
        before = self._find_before()
        self.min_offset, self.max_offset = self._bounds(before)

    def _bounds(self, before: FoundEntries) -> tuple[int, int]:
        low, high = self._first_in_files, self._end_of_files
        if low >= high:
            low = high
        if len(self._behind) and self._behind.max_offset > high:
            if low == high:
                low = next(offset for offset in self._behind.offsets() if offset >= high)
            high = self._behind.max_offset
        if len(before):
            low = min(low, before.min_offset)
            for offset in before.offsets():
                self._healed[offset] = before.get(offset)
        return low, high

    def _find_before(self) -> FoundEntries:
        """Return what a first file that is missing held.

        RocketMQ deletes a queue file only when all its entries point before the log's start, so
        the first file that is left begins with such an entry, or with blank ones.
        """
        start = self._files.first
        entry = self._files.entry(start) if 0 < start < self._end_of_files else None
        if entry is None or entry.physical_offset <= self._log.min_offset:
            return FoundEntries()
        return self._scan(self._log.min_offset, min(entry.physical_offset, self._log_end))

    def _scan(self, start: int, end: int) -> FoundEntries:
        found = scan_entries(self._log, start, end, self.topic, self.queue_id)
        return found.get((self.topic, self.queue_id)) or FoundEntries()

    def entry(self, queue_offset: int) -> QueueEntry | None:
        """Return the entry of a queue offset, as found; None where there is no record for it."""
        if queue_offset in self._healed:
            return self._healed[queue_offset]
        if queue_offset < self._end_of_files:
            return self._files.entry(queue_offset)
        return self._behind.get(queue_offset)

    def head(self, queue_offset: int) -> tuple[QueueEntry, Head] | None:
        """Return entry and head of the record with a queue offset; its body is not checked."""
        entry = self.entry(queue_offset)
        head = entry and self._matching_head(entry, queue_offset)
        if entry and head:
            return entry, head
        if not self._first_in_files <= queue_offset < self._end_of_files:
            return None
        if queue_offset not in self._healed:
            self._heal(queue_offset)
        entry = self._healed[queue_offset]
        head = entry and self._matching_head(entry, queue_offset)
        return (entry, head) if entry and head else None

    def record(self, queue_offset: int) -> Record | None:
        """Return the good record with a queue offset."""
        found = self.head(queue_offset)
        return self._log.record(found[0].physical_offset) if found else None

    def heads(self, start: int, end: int) -> Iterator[tuple[QueueEntry, Head]]:
        """Yield entry and head of the records with queue offsets in [start, end), ascending."""
        for offset in range(max(start, self.min_offset), min(end, self.max_offset)):
            found = self.head(offset)
            if found is not None:
                yield found

    def _matching_head(self, entry: QueueEntry, queue_offset: int) -> Head | None:
        if not self._log.min_offset <= entry.physical_offset < self._log_end:
            return None
        head = head_at(self._log, entry.physical_offset)
        if head is None or head.topic != self._name:
            return None
        return head if (head.queue_id, head.queue_offset) == (self.queue_id, queue_offset) else None

    def _heal(self, queue_offset: int) -> None:
        """Find the records of the entries around `queue_offset` that cannot be believed."""
        before, start = queue_offset, self._log.min_offset
        while before > self._first_in_files:
            entry = self._files.entry(before - 1)
            head = entry and self._matching_head(entry, before - 1)
            if head:
                start = head.physical_offset + head.size
                break
            before -= 1
        after, end = queue_offset + 1, self._log_end
        while after < self._end_of_files:
            entry = self._files.entry(after)
            head = entry and self._matching_head(entry, after)
            if head:
                end = head.physical_offset
                break
            after += 1
        found = self._scan(start, end)
        for offset in range(before, after):
            self._healed[offset] = found.get(offset)
