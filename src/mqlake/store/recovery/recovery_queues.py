"""Derive where consume queues end, and which of their files are valid, from what was found.

Nothing is changed here (docs/live-store.md, "Recovery").
Upstream: `ConsumeQueue.recover`, `truncateDirtyLogicFiles`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from mqlake.errors import DiskError, StoreError
from mqlake.formats.consume_queue import BLANK_ENTRY, QueueEntry
from mqlake.formats.topic_names import LIGHT_PREFIX
from mqlake.store.incarnations.restarts import Position
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.log.scan import Queue, head_of
from mqlake.store.log.segments import CommitLog
from mqlake.store.queues.queue_kind import BATCH, QueueKind
from mqlake.store.recovery.queue_bytes import FoundQueue, QueueBytes

_CHUNK = 64
_UNWRITTEN = QueueEntry(0, 0, 0)


class KeptQueue(NamedTuple):
    """The part of one queue that stays before the log is dispatched again.

    Attributes:
        files: the queue, with the files that stay.
        end: the queue offset at which it ends.
        has_more: whether the log has records for it.
        written: the queue offset after which the remaining files are zero.
    """

    files: FoundQueue
    end: int
    has_more: bool
    written: int


class QueueBegin(NamedTuple):
    """The first record that a queue's files have."""

    queue: Queue
    queue_offset: int
    physical_offset: int


class KeptQueues(NamedTuple):
    """The parts of all queues that stay.

    Attributes:
        ends: the sum of the queue offsets at which they end before the stretch that is dispatched.
        is_broken: whether a queue lacks entries of records before that stretch.
        dead: queues, with the files whose entries are all of deleted incarnations. The other files
            of the same queue are in `queues`.
        begins_late: queues whose first file is not the first one of the queue, although its first
            record is still in the log.
    """

    queues: tuple[KeptQueue, ...]
    ends: int
    is_broken: bool
    dead: tuple[FoundQueue, ...] = ()
    begins_late: tuple[QueueBegin, ...] = ()


class QueueRecovery:
    """Checks the entries in files.

    Entries of records before `start` are trusted if their record confirms it, or was removed; those
    of later records come from the log.

    Args:
        start: physical offset from which on all records are dispatched again.
        incarnations: which records are dead; no entry of them is trusted.
        kept: physical offset before which the entries of all records, and their files' names, are
            durable, according to the checkpoint; `start` if it does not say so.
    """

    def __init__(
        self,
        files: QueueBytes,
        log: CommitLog,
        start: int,
        incarnations: Incarnations,
        kept: int | None = None,
    ) -> None:
        self._files, self._log, self._start = files, log, start
        self._incarnations = incarnations
        self._kept = start if kept is None else kept

    def kept(self, queues: Iterable[FoundQueue], firsts: Mapping[Queue, int]) -> KeptQueues:
        """Return the remaining parts of queues, and of those that only the log has.

        Args:
            firsts: the queue offset of each queue's first record from `start` on.

        Raises:
            StoreError: a file cannot be read.
        """
        found = {(queue.topic, queue.queue_id): queue for queue in queues}
        found.update(
            (key, FoundQueue(*key, kind=self._files.kind)) for key in firsts if key not in found
        )
        kept: list[KeptQueue] = []
        dead: list[FoundQueue] = []
        late: list[QueueBegin] = []
        ends, is_broken = 0, False
        for key, queue in found.items():
            living, lost = self._without_dead(queue)
            first = firsts.get(key)
            if lost is not None:
                dead.append(lost)
                # The checkpoint may be older than the deletion, and counts them.
                end = self._end_of_dead(lost)
                ends += end
                is_broken = is_broken or self._has_living(lost, end)
                if first is None and not living.bases:
                    continue
            mended, lacks_file = self.mend(living)
            if first is None:
                end = self._find_end(mended)
                ends += end
            else:
                mended, end, lacks_entry = self._find_end_before(mended, first)
                ends += self._place(first, end)
                lacks_file = lacks_file or lacks_entry
            is_broken = is_broken or lacks_file
            written = self._files.written_end(mended)
            kept.append(KeptQueue(mended, end, first is not None, written))
            if mended.first and (begin := self.begin(mended)) is not None:
                late.append(begin)
        in_log = tuple(each for each in late if each.physical_offset >= self._log.min_offset)
        return KeptQueues(tuple(kept), ends, is_broken, tuple(dead), in_log)

    def _without_dead(self, queue: FoundQueue) -> tuple[FoundQueue, FoundQueue | None]:
        """Return a queue with its living files, and with the dead ones if it has any.

        A file is dead if its first entry is. The files of two incarnations are together only after
        a power loss, or if the process was killed while it removed them.

        Raises:
            StoreError: a file cannot be read.
        """
        before = self._incarnations.before(queue.topic)
        if not before:
            return queue, None

        def first(base: int) -> QueueEntry:
            entry = self._files.entry(queue, base // self._files.entry_size)
            return entry or _UNWRITTEN

        def is_dead(entry: QueueEntry) -> bool:
            return entry.size > 0 and entry != BLANK_ENTRY and entry.physical_offset < before

        if queue.bases and not (is_dead(first(queue.bases[0])) or is_dead(first(queue.bases[-1]))):
            return queue, None
        # A file after a dead one may have been created in advance.
        living = tuple(
            base for base in queue.bases if first(base).size > 0 and not is_dead(first(base))
        )
        dead = tuple(base for base in queue.bases if base not in living)
        return queue._replace(bases=living), queue._replace(bases=dead)

    def _end_of_dead(self, queue: FoundQueue) -> int:
        """Return where the entries of a dead queue end that the checkpoint can have counted."""
        end = self._files.written_end(queue)
        while end > queue.first:
            entry = self._files.entry(queue, end - 1)
            if entry is not None and entry.physical_offset < self._kept:
                break
            end -= 1
        return end

    def _has_living(self, queue: FoundQueue, end: int) -> bool:
        """Return whether a dead file has an entry of a living record, too, before its end.

        RocketMQ's slaves append to a queue whose topic the master has deleted and created again.
        """
        entry = self._files.entry(queue, end - 1) if end > queue.first else None
        return (
            entry is not None
            and entry != BLANK_ENTRY
            and entry.physical_offset >= self._incarnations.before(queue.topic)
        )

    def begin(self, queue: FoundQueue) -> QueueBegin | None:
        """Return the first record that the files of a queue have.

        None if the queue begins with blank entries, or if the entry is not this record's.

        Raises:
            StoreError: a file cannot be read.
        """
        if not self._is_true(queue, queue.first):
            return None
        entry = self._files.entry(queue, queue.first)
        return entry and QueueBegin(queue[:2], queue.first, entry.physical_offset)

    def mend(self, queue: FoundQueue) -> tuple[FoundQueue, bool]:
        """Return a queue with those of its files that are consecutive.

        Returns:
            The queue, and whether it lacks a file whose records still exist.

        Raises:
            StoreError: a file cannot be read.
        """
        size = self._files.file_size
        queue = queue._replace(bases=tuple(base for base in queue.bases if base % size == 0))
        gaps = [base for base in queue.bases[1:] if base - size not in queue.bases]
        # The disk kept the name of a new file, but not of the one before it.
        later = next((base for base in gaps if not self._is_kept(queue, base)), None)
        if later is not None:
            queue = queue._replace(bases=tuple(base for base in queue.bases if base < later))
        # The queue was trimmed, but a file reappeared; or one was lost.
        gaps = [base for base in gaps if base in queue.bases]
        lacks_file = any(self._is_in_log(queue, base) for base in gaps)
        if gaps:
            queue = queue._replace(bases=tuple(base for base in queue.bases if base >= gaps[-1]))
        return queue, lacks_file

    def _is_in_log(self, queue: FoundQueue, gap: int) -> bool:
        """Return whether the file before a gap has an existing record, so that it was not trimmed.

        Args:
            gap: base of the file after the gap.
        """
        before = max(base for base in queue.bases if base < gap)
        entry = self._files.entry(
            queue, (before + self._files.file_size) // self._files.entry_size - 1
        )
        return entry is not None and entry.physical_offset >= self._log.min_offset

    def _is_kept(self, queue: FoundQueue, base: int) -> bool:
        """Return whether a file has entries that were durable when the checkpoint was written."""
        places = range(base // self._files.entry_size, self._files.written_end(queue))
        entries = (self._files.entry(queue, place) for place in places)
        first = next((one for one in entries if one and one.size > 0 and one != BLANK_ENTRY), None)
        return first is not None and first.physical_offset < self._kept

    def _find_end_before(self, queue: FoundQueue, first: int) -> tuple[FoundQueue, int, bool]:
        """Find the end of a queue whose next record in the log has queue offset `first`.

        Returns:
            The queue with its remaining files, its end, and whether it lacks the entry before.
        """
        if first == 0 or self._is_true(queue, first - 1) or self._begins_at(queue, first):
            return queue, first, False
        if self._start > self._log.min_offset:
            return queue, first, True
        # All of the log is dispatched: earlier entries belong to removed records.
        return queue._replace(bases=()), 0, False

    def _place(self, first: int, end: int) -> int:
        """Return where the entries of a queue end before its record of queue offset `first`.

        Args:
            end: the end of the remaining entries.
        """
        del end
        return first

    def _begins_at(self, queue: FoundQueue, first: int) -> bool:
        """Return whether all entries of the queue before `first` are blank."""
        if not queue.bases or first - queue.first > self._files.file_size // self._files.entry_size:
            return False
        places = range(queue.first, first)
        return bool(places) and all(
            self._files.entry(queue, place) == BLANK_ENTRY for place in places
        )

    def _find_end(self, queue: FoundQueue) -> int:
        """Return the queue offset after the last trusted entry."""
        stop = self._files.written_end(queue)
        while stop > queue.first:
            first = max(queue.first, stop - _CHUNK)
            entries = self._files.entries(queue, first, stop)
            for number in range(len(entries) - 1, -1, -1):
                if self._is_right(queue, first + number, entries[number]):
                    return first + number + 1
            stop = first
        return queue.first

    def ends(self, queue: FoundQueue) -> tuple[Position, Position] | None:
        """Return the first and the last record of a queue that its files correctly name.

        None without such an entry.

        Raises:
            StoreError: a file cannot be read.
        """
        queue, _ = self.mend(self._without_dead(queue)[0])
        end = self._find_end(queue)
        if end == queue.first:
            return None
        first, last = self._position(queue, queue.first), self._position(queue, end - 1)
        return (first or last, last) if last is not None else None

    def _position(self, queue: FoundQueue, place: int) -> Position | None:
        entry = self._files.entry(queue, place)
        if entry is None or entry == BLANK_ENTRY:
            return None
        return Position(entry.physical_offset, place)

    def last_offset(self, queue: FoundQueue) -> int | None:
        """Return the physical offset that the queue's last entry names, or None without entries.

        Raises:
            StoreError: a file cannot be read.
        """
        end = self._find_end(queue)
        if end == queue.first or queue.topic.startswith(LIGHT_PREFIX):
            return None
        entry = self._files.entry(queue, end - 1)
        return entry.physical_offset if entry else None

    def _is_true(self, queue: FoundQueue, queue_offset: int) -> bool:
        try:
            entry = self._files.entry(queue, queue_offset)
        except DiskError:
            raise  # An entry that cannot be read now is not a wrong one.
        except StoreError:
            return False
        return entry is not None and self._is_right(queue, queue_offset, entry)

    def _is_right(self, queue: FoundQueue, queue_offset: int, entry: QueueEntry) -> bool:
        """Return whether an entry's record is this message, or was removed."""
        offset = entry.physical_offset
        if entry.size <= 0 or not 0 <= offset < self._start or entry == BLANK_ENTRY:
            return False
        if self._incarnations.is_dead(queue.topic, offset):
            return False
        if offset < self._log.min_offset or queue.topic.startswith(LIGHT_PREFIX):
            return True
        name = (queue.topic, queue.queue_id)
        head = head_of(self._log, self._start, name, queue_offset, offset)
        return head is not None and head.size == entry.size


class Judges:
    """Checks queues of all kinds.

    Args:
        by_kind: the checker of each kind.
        batch_topics: the topics with batch consume queues.
    """

    def __init__(
        self, by_kind: Mapping[QueueKind, QueueRecovery], batch_topics: Collection[str]
    ) -> None:
        self._by_kind, self._batch_topics = by_kind, batch_topics

    def kept(self, queues: Collection[FoundQueue], firsts: Mapping[Queue, int]) -> KeptQueues:
        """Return the remaining parts of queues: see `QueueRecovery.kept`."""
        parts: list[KeptQueues] = []
        for kind, judge in self._by_kind.items():
            is_batch = kind is BATCH
            its_firsts = {
                key: first
                for key, first in firsts.items()
                if (key[0] in self._batch_topics) is is_batch
            }
            parts.append(judge.kept([each for each in queues if each.kind is kind], its_firsts))
        return KeptQueues(
            tuple(queue for part in parts for queue in part.queues),
            sum(part.ends for part in parts),
            any(part.is_broken for part in parts),
            tuple(queue for part in parts for queue in part.dead),
            tuple(begin for part in parts for begin in part.begins_late),
        )

    def ends(self, queue: FoundQueue) -> tuple[Position, Position] | None:
        """Return the first and the last record of a queue that its files correctly name.

        None without such an entry.

        Raises:
            StoreError: a file cannot be read.
        """
        return self._by_kind[queue.kind].ends(queue)

    def begin(self, queue: FoundQueue) -> QueueBegin | None:
        """Return the first record that the files of a queue have, None if they do not say so.

        Raises:
            StoreError: a file cannot be read.
        """
        return self._by_kind[queue.kind].begin(queue)

    def last_offset(self, queue: FoundQueue) -> int | None:
        """Return the physical offset that a queue's last entry names, or None without entries.

        Raises:
            StoreError: a file cannot be read.
        """
        judge = self._by_kind[queue.kind]
        return judge.last_offset(judge.mend(queue)[0])
