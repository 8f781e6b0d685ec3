"""Find where consume queues end after a crash (docs/live-store.md, "Recovery").

Upstream: `ConsumeQueue.recover`, `truncateDirtyLogicFiles`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from mqlake.errors import StoreError
from mqlake.formats.consume_queue import BLANK_ENTRY, ENTRY, ENTRY_SIZE, QueueEntry
from mqlake.storage.protocol import Directory
from mqlake.store.log.scan import head_of
from mqlake.store.log.segments import CommitLog
from mqlake.store.queues.owned_queue import UNKNOWN, OwnedQueue
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.queues.queue_files import DIRECTORY, queue_ids, topic_names

LIGHT_PREFIX = "%LMQ%"  # RocketMQ: MixAll.LMQ_PREFIX; its entries point at records of other topics

_CHUNK = 64


class QueueRecovery:
    """Judge the entries that files have, and settle where each queue ends.

    Entries of records before `start` are believed if their record says so itself, or is gone;
    those of later records come from the log.

    Args:
        start: physical offset from which on all records are dispatched again.
        kept: physical offset before whose records all entries, and their files' names, are on the
            disk, says the checkpoint; `start` without it.
        distrust: `CheckpointFile.distrust_queues`, called before files go that show that others
            are lost.

    Attributes:
        is_broken: a queue lacks entries of records before `start`.
        ends: once settled, the sum of the queue offsets at which the queues ended at `start`.
    """

    def __init__(
        self,
        queues: OwnedQueues,
        log: CommitLog,
        start: int,
        kept: int | None,
        distrust: Callable[[], None],
    ) -> None:
        self.is_broken = False
        self.ends = 0
        self._distrust = distrust
        self._queues, self._log, self._start = queues, log, start
        self._kept = start if kept is None else kept
        queues.end_before = self.end_before
        for queue in queues:
            queue.end = UNKNOWN
            self._mend_files(queue)

    def _mend_files(self, queue: OwnedQueue) -> None:
        """Let all files follow each other."""
        size = self._queues.file_size
        for base in [base for base in queue.bases if base % size]:
            queue.remove_file(base)
        gaps = [base for base in queue.bases[1:] if base - size not in queue.bases]
        # The disk kept the name of a file that was new, but not of the one before it.
        later = next((base for base in gaps if not self._is_kept(queue, base)), None)
        for base in [base for base in queue.bases if later is not None and base >= later]:
            queue.remove_file(base)
        # Trimmed, but a file came back; or one was lost.
        gaps = [base for base in gaps if base in queue.bases]
        if any(self._is_in_log(queue, base) for base in gaps):
            self.is_broken = True
            self._distrust()
        for base in [base for base in queue.bases if gaps and base < gaps[-1]]:
            queue.remove_file(base)

    def _is_in_log(self, queue: OwnedQueue, gap: int) -> bool:
        """Say whether the file before a gap has a record that is still there: it was not trimmed.

        Args:
            gap: base of the file behind the gap.
        """
        before = max(base for base in queue.bases if base < gap)
        entry = queue.entry((before + self._queues.file_size) // ENTRY_SIZE - 1)
        return entry is not None and entry.physical_offset >= self._log.min_offset

    def _is_kept(self, queue: OwnedQueue, base: int) -> bool:
        """Say whether a file has entries that were on the disk when the checkpoint was written."""
        places = range(base // ENTRY_SIZE, queue.written_end())
        entries = (queue.entry(place) for place in places)
        first = next((one for one in entries if one and one.size > 0 and one != BLANK_ENTRY), None)
        return first is not None and first.physical_offset < self._kept

    def end_before(self, queue: OwnedQueue, first: int) -> int:
        """Return where a queue ends whose next record in the log has queue offset `first`."""
        self.ends += first
        if first == 0 or self._is_true(queue, first - 1) or self._begins_at(queue, first):
            return first
        if self._start > self._log.min_offset:
            self.is_broken = True
            return first
        # All of the log is dispatched: what is before is of no record that is still there.
        for base in list(queue.bases):
            queue.remove_file(base)
        return 0

    def _begins_at(self, queue: OwnedQueue, first: int) -> bool:
        """Say whether all places of the queue before `first` are blank."""
        if not queue.bases or first - queue.first > self._queues.file_size // ENTRY_SIZE:
            return False
        places = range(queue.first, first)
        return bool(places) and all(queue.entry(place) == BLANK_ENTRY for place in places)

    def settle(self) -> None:
        """Find the ends of queues that got no record; clear what is behind any end."""
        for queue in self._queues:
            written = queue.written_end()
            if queue.end == UNKNOWN:
                queue.end = self.find_end(queue, written)
                self.ends += queue.end
            if written > queue.end or len(queue.bases) > 1:
                queue.end_at(queue.end)

    def find_end(self, queue: OwnedQueue, written: int) -> int:
        """Return the queue offset behind the last entry that can be believed.

        Args:
            written: the queue offset behind which all is zero.
        """
        stop = written
        while stop > queue.first:
            first = max(queue.first, stop - _CHUNK)
            queue.end = stop
            entries = list(ENTRY.iter_unpack(queue.read(first, stop - first)))
            queue.end = UNKNOWN
            for number in range(len(entries) - 1, -1, -1):
                entry = QueueEntry(*entries[number])
                if self._is_right(queue, first + number, entry):
                    return first + number + 1
            stop = first
        return queue.first

    def last_offset(self, queue: OwnedQueue) -> int | None:
        """Return the physical offset that the queue's last entry names, None without one."""
        end = self.find_end(queue, queue.written_end())
        if end == queue.first or queue.topic.startswith(LIGHT_PREFIX):
            return None
        entry = queue.entry(end - 1)
        return entry.physical_offset if entry else None

    def _is_true(self, queue: OwnedQueue, queue_offset: int) -> bool:
        try:
            entry = queue.entry(queue_offset)
        except StoreError:
            return False
        return entry is not None and self._is_right(queue, queue_offset, entry)

    def _is_right(self, queue: OwnedQueue, queue_offset: int, entry: QueueEntry) -> bool:
        """Say whether an entry's record is this message, or gone."""
        offset = entry.physical_offset
        if entry.size <= 0 or not 0 <= offset < self._start or entry == BLANK_ENTRY:
            return False
        if offset < self._log.min_offset or queue.topic.startswith(LIGHT_PREFIX):
            return True
        name = (queue.topic, queue.queue_id)
        head = head_of(self._log, self._start, name, queue_offset, offset)
        return head is not None and head.size == entry.size


def find_file_size(directory: Directory, wanted: int) -> int:
    """Return the bytes of a queue file: those that most files have, `wanted` where none tells."""
    sizes: Counter[int] = Counter()
    for topic in topic_names(directory):
        for queue_id in queue_ids(directory, topic):
            path = f"{DIRECTORY}/{topic}/{queue_id}"
            for name in directory.names(path)[:1]:
                size = directory.size(f"{path}/{name}")
                if size == wanted:
                    return wanted
                if size >= ENTRY_SIZE and size % ENTRY_SIZE == 0:
                    sizes[size] += 1
    return max(sizes, key=lambda size: (sizes[size], size)) if sizes else wanted
