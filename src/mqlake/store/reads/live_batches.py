"""Read batch consume queues of a live store (docs/live-store.md, "Batch consume queues").

Upstream: `DefaultMessageStore.getMessage`, `BatchConsumeQueue.iterateFrom`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mqlake.dispatch.kernel import load
from mqlake.dispatch.queue_read import Wanted
from mqlake.errors import DiskError, StoreError
from mqlake.formats.batch_consume_queue import BatchQueueUnit
from mqlake.formats.consume_queue import ENTRY, QueueEntry
from mqlake.store.log.scan import Head, head_of
from mqlake.store.log.segments import CommitLog
from mqlake.store.queues.owned_batch_queue import OwnedBatchQueue
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.queues.tag_filter import TagFilter
from mqlake.store.reads.live_get import QueueWalk
from mqlake.store.reads.live_result import LiveGetResult
from mqlake.store.results import QueueRange, Status


class BatchQueueReading:
    """How one batch consume queue is read: what to select, and the limits.

    An answer has whole records. The first may begin before the requested offset: clients skip the
    messages of an inner batch that they already have.

    Args:
        most_entries: maximum number of queue offsets that one read examines.
    """

    def __init__(
        self,
        log: CommitLog,
        queues: OwnedQueues,
        wanted: Wanted,
        tags: TagFilter,
        most_entries: int,
    ) -> None:
        self._log, self._queues = log, queues
        self._wanted, self._tags, self._most_entries = wanted, tags, most_entries
        self._topic, self._queue_id = wanted.topic.decode(), wanted.queue_id
        self._kernel = load()

    def get(self, offset: int, max_messages: int, max_bytes: int, confirmed: int) -> LiveGetResult:
        """Read from a queue offset on; nothing from the physical offset `confirmed` on.

        Args:
            max_messages: the messages of all inner batches together; the first record is always
                returned.
        """
        topic, queue_id = self._topic, self._queue_id
        low = self._queues.min_offset(topic, queue_id)
        high = self._queues.max_offset(topic, queue_id)
        queue = QueueRange(low, high)
        batches = self._queues.batches(topic, queue_id)
        if high == 0 or batches is None:
            return LiveGetResult(Status.NO_MESSAGE_IN_QUEUE, 0, queue)
        if offset < low:
            return LiveGetResult(Status.OFFSET_TOO_SMALL, low, queue)
        if offset == high:
            return LiveGetResult(Status.OFFSET_OVERFLOW_ONE, offset, queue)
        if offset > high:
            return LiveGetResult(Status.OFFSET_OVERFLOW_BADLY, high, queue)
        walk = QueueWalk(self._kernel, self._log, self._wanted, self._tags, confirmed)
        end = min(high, offset + max(self._most_entries, max_messages))
        at, messages = offset, 0
        try:
            for unit in batches.units(batches.place_of(offset), end):
                if messages and messages + unit.batch_size > max_messages:
                    break
                before = walk.messages
                # The records count here; the number of their messages counts above.
                count, _ = walk.take(unit.base_offset, _entry(unit), before + 1, max_bytes)
                if not count:
                    break  # There is no room in max_bytes.
                at = max(at, unit.end_offset)
                if walk.messages > before:
                    messages += unit.batch_size
                if messages >= max_messages:
                    break
            else:
                at = max(at, end)  # There is a gap before the next unit.
        except DiskError:
            raise  # The message exists: a reader must not continue after it.
        except StoreError:
            following = batches.next_file(at) if at == offset else None
            return walk.result(at, queue, following)
        return walk.result(at, queue)

    def warm_up(
        self, offset: int, max_messages: int, confirmed: int
    ) -> Callable[[], object] | None:
        """Return None: nothing is read into memory ahead."""
        del offset, max_messages, confirmed
        return None


class LiveBatchQueue:
    """The units of one queue that lead to a record of it before `log_end`, for searches by time."""

    def __init__(
        self, log: CommitLog, log_end: int, batches: OwnedBatchQueue, min_offset: int
    ) -> None:
        self.topic, self.queue_id = batches.topic, batches.queue_id
        self.min_offset, self.max_offset = min_offset, batches.end
        self._log, self._log_end, self._batches = log, log_end, batches

    def base_of(self, offset: int) -> int:
        """Return the first queue offset of the batch that contains a queue offset."""
        unit = self._batches.unit(self._batches.place_of(offset))
        return min(offset, unit.base_offset) if unit else offset

    def heads(self, start: int, end: int) -> Iterator[tuple[QueueEntry, Head]]:
        """Yield entry and head of the records that begin in [start, end), ascending."""
        queue = (self.topic, self.queue_id)
        start, end = max(start, self.min_offset), min(end, self.max_offset)
        for unit in self._batches.units(self._batches.place_of(start), end):
            base, offset = unit.base_offset, unit.physical_offset
            if base < start:
                continue
            head = head_of(self._log, self._log_end, queue, base, offset)
            if head is not None:
                yield QueueEntry(*unit[:3]), head


def _entry(unit: BatchQueueUnit) -> bytes:
    return ENTRY.pack(*unit[:3])
