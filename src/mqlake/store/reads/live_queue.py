"""One queue of a live store as searches by time see it."""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.errors import DiskError, StoreError
from mqlake.formats import consume_queue
from mqlake.formats.consume_queue import ENTRY_SIZE, QueueEntry
from mqlake.store.log.scan import Head, head_of
from mqlake.store.log.segments import CommitLog
from mqlake.store.queues.owned_queues import OwnedQueues

_MOST_AT_ONCE = 512


class LiveQueue:
    """The entries of one queue that lead to a record of it before `log_end`."""

    def __init__(
        self, log: CommitLog, log_end: int, queues: OwnedQueues, topic: str, queue_id: int
    ) -> None:
        self.topic, self.queue_id = topic, queue_id
        self.min_offset = queues.min_offset(topic, queue_id)
        self.max_offset = queues.max_offset(topic, queue_id)
        self._log, self._log_end, self._queues = log, log_end, queues

    def heads(self, start: int, end: int) -> Iterator[tuple[QueueEntry, Head]]:
        """Yield entry and head of the records with queue offsets in [start, end), ascending."""
        queue = (self.topic, self.queue_id)
        for offset, entry in self._entries(max(start, self.min_offset), min(end, self.max_offset)):
            head = head_of(self._log, self._log_end, queue, offset, entry.physical_offset)
            if head is not None:
                yield entry, head

    def _entries(self, start: int, end: int) -> Iterator[tuple[int, QueueEntry]]:
        # A search reads one entry at each of many positions; a range reads all entries at one.
        most = 1
        while start < end:
            in_file = self._queues.places_in_file(start)
            count = min(most, end - start, in_file)
            try:
                data = self._queues.entries(self.topic, self.queue_id, start, count)
            except DiskError:
                raise
            except StoreError:
                data = b""
            for at in range(0, len(data), ENTRY_SIZE):
                yield start + at // ENTRY_SIZE, consume_queue.decode(data, at)
            # If a file was removed, the next one still exists.
            start += len(data) // ENTRY_SIZE or in_file
            most = min(2 * most, _MOST_AT_ONCE)
