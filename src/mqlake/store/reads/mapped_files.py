"""Mapped files of a store, for kernels that follow the entries of queues to their records.

A kernel gets addresses. What is mapped stays in memory until `clear`, which is called as soon as
files are removed: a file that is kept mapped would keep its space on the disk. Kernels compare the
generation, so that no address is used after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from mqlake.dispatch.kernel import load
from mqlake.dispatch.queue_read import wanted
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.store.log.segments import CommitLog
from mqlake.store.queues.owned_queue import OwnedQueue
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.reads.warm_up import KnownWarm, WarmUp

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

MOST_SEGMENTS: Final = 64
"""Segments that are mapped. Beyond it, all are dropped."""
_SHARE: Final = 4
"""Of the files that the queues may have open, a part so small is mapped here."""


class MappedView(NamedTuple):
    """What a kernel knows of a queue.

    Attributes:
        low, high: its least and its greatest offset.
        first: the queue offset of the first entry in the mapped file.
        address: of that entry.
        entries: how many the file has room for.
        warm: which records are in memory.
    """

    low: int
    high: int
    first: int
    address: int
    entries: int
    warm: KnownWarm


class _MappedQueue:
    """A queue with its mapped file, the one that was asked for last."""

    def __init__(self, queue: OwnedQueue, warm_up: WarmUp) -> None:
        self.queue, self.warm_up = queue, warm_up
        self.array: Bytes = np.zeros(0, np.uint8)
        self.first = self.address = self.entries = 0

    def covers(self, offset: int) -> bool:
        """Return whether the entry of an offset is in the mapped file."""
        return self.first <= offset < self.first + self.entries

    def use(self, first: int, array: Bytes) -> None:
        """Note the file that begins at a queue offset."""
        self.first, self.array = first, array
        self.address, self.entries = _address(array), len(array) // ENTRY_SIZE


class MappedFiles:
    """Segments of the log by physical offset, and files of queues. For the store's thread.

    Attributes:
        generation: another number after each `clear`.
        segments: i8[MOST_SEGMENTS, 3]: physical offset, address and size of each mapped segment.
        count: how many are mapped.
    """

    def __init__(self, log: CommitLog, queues: OwnedQueues) -> None:
        self._log, self._queues = log, queues
        self._kernel = load()
        self._most_queues = max(1, queues.files.most_open // _SHARE)
        self._arrays: list[Bytes] = []
        self._known: dict[tuple[str, int], _MappedQueue] = {}
        self.segments: Longs = np.zeros((MOST_SEGMENTS, 3), np.int64)
        self.generation, self.count = 1, 0

    @property
    def log_start(self) -> int:
        """The physical offset at which the log begins."""
        return self._log.min_offset

    def clear(self) -> None:
        """Drop all files."""
        self.generation += 1
        self.count = 0
        self._arrays.clear()
        self._known.clear()

    def map_segment(self, offset: int) -> bool:
        """Map the segment that contains a physical offset; return whether there is one.

        Raises:
            StoreError: the segment cannot be opened.
        """
        place = self._log.place(offset)
        if place is None or place.end <= 0:
            return False
        if self.count == MOST_SEGMENTS:
            self.clear()
        array = np.frombuffer(place.view, np.uint8, place.end)
        self._arrays.append(array)
        self.segments[self.count] = place.segment.base, _address(array), len(array)
        self.count += 1
        return True

    def look(
        self, topic: str, queue_id: int, offset: int, count: int, confirmed: int
    ) -> MappedView | None:
        """Return a queue whose entries from an offset on are mapped, and whose records are warm.

        None if there is no such entry, or the records must be read from the disk.

        Args:
            count: how many entries are about to be followed.
            confirmed: physical offset before which messages may be read.

        Raises:
            StoreError: a file cannot be opened.
        """
        mapped = self._mapped(topic, queue_id)
        if mapped is None:
            return None
        queue = mapped.queue
        low, high = queue.min_offset(self._queues.min_physical_offset), queue.end
        if not low <= offset < high:
            return None
        if not mapped.covers(offset) and not self._map_entries(mapped, offset):
            return None
        stop = min(offset + count, high, mapped.first + mapped.entries)
        if mapped.warm_up.job(offset, stop - offset, confirmed) is not None:
            mapped.warm_up = self._warm_up(topic, queue_id)  # Nobody has run the job yet.
            return None
        known = mapped.warm_up.known
        if not (known.first <= offset and stop <= known.stop and confirmed < known.until):
            return None
        return MappedView(low, high, mapped.first, mapped.address, mapped.entries, known)

    def _mapped(self, topic: str, queue_id: int) -> _MappedQueue | None:
        queue, key = self._queues.existing(topic, queue_id), (topic, queue_id)
        mapped = self._known.get(key)
        if mapped is not None and mapped.queue is queue:
            return mapped
        if not isinstance(queue, OwnedQueue):
            return None
        if len(self._known) >= self._most_queues:
            self.clear()
        mapped = self._known[key] = _MappedQueue(queue, self._warm_up(topic, queue_id))
        return mapped

    def _warm_up(self, topic: str, queue_id: int) -> WarmUp:
        return WarmUp(self._log, self._queues, wanted(topic, queue_id), self._kernel)

    def _map_entries(self, mapped: _MappedQueue, offset: int) -> bool:
        """Map the file that has the entry of an offset; return whether that is possible."""
        found = mapped.queue.file_of(offset)
        if found is None:
            return False
        first, view = found
        mapped.use(first, np.frombuffer(view, np.uint8))
        return mapped.covers(offset)


def _address(array: Bytes) -> int:
    return int(array.__array_interface__["data"][0])
