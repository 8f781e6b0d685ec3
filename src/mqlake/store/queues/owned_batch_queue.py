"""One batch consume queue that this process writes (docs/formats/batch_consume_queue.md).

Upstream: `BatchConsumeQueue`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mqlake.errors import DiskError, StoreError
from mqlake.formats import batch_consume_queue
from mqlake.formats.batch_consume_queue import UNIT_SIZE, BatchQueueUnit
from mqlake.store.queues.owned_queue import MOST_BLANKS, OwnedQueue
from mqlake.store.queues.owned_queue_files import OwnedQueueFiles
from mqlake.store.queues.queue_kind import BATCH

_MOST_AT_ONCE = 512


class OwnedBatchQueue:
    """The units of one queue: each contains the queue offsets of its record.

    Attributes:
        end: the queue offset of the next message.
        places: its files, as a sequence of units that are counted from the first one ever written.
    """

    def __init__(self, files: OwnedQueueFiles, topic: str, queue_id: int) -> None:
        self.topic, self.queue_id = topic, queue_id
        self.places = OwnedQueue(files, topic, queue_id, BATCH)
        self.end = 0

    @property
    def path(self) -> str:
        """The directory of its files."""
        return self.places.path

    @property
    def bases(self) -> list[int]:
        """The position of each file's first byte within the whole queue, ascending."""
        return self.places.bases

    def adopt(self, bases: Sequence[int], count: int) -> None:
        """Become a queue that already has files, with `count` units up to its end.

        Raises:
            DiskError: the system refused to read the last one.
        """
        self.places.adopt(bases, count)
        last = self.unit(count - 1)
        self.end = last.end_offset if last else 0

    # Append

    def append(self, units: Sequence[BatchQueueUnit]) -> tuple[int, int]:
        """Append units; return how many, and how many are implausible.

        Queue offsets that have a record keep it: the first record of the log that contains them
        owns them. A unit that would leave more than `MOST_BLANKS` of them empty is implausible.

        Raises:
            DiskError: some may have been written; repeating the call completes them.
        """
        taken, refused, end = bytearray(), 0, self.end
        for unit in units:
            if unit.base_offset < end:
                continue
            if self.places.bases and unit.base_offset - end > MOST_BLANKS:
                refused += 1
                continue
            taken += batch_consume_queue.encode(unit)
            end = unit.end_offset
        if not taken:
            return 0, refused
        count = self.places.append(self.places.end, taken)
        self.end = end
        return count, refused

    # Read

    def unit(self, place: int) -> BatchQueueUnit | None:
        """Return the unit with a number, or None if it does not exist.

        Raises:
            DiskError: the system refused an operation; the same call may succeed later.
            StoreError: its file was removed.
        """
        if not self.places.first <= place < self.places.end:
            return None
        return batch_consume_queue.decode(self.places.read(place, 1))

    def units(self, place: int, limit: int) -> Iterator[BatchQueueUnit]:
        """Yield the units from a number on that begin before the queue offset `limit`.

        Raises:
            DiskError: as for `unit`.
            StoreError: as for `unit`.
        """
        most = 1
        while place < self.places.end:
            data = self.places.read(place, most)
            for at in range(0, len(data), UNIT_SIZE):
                unit = batch_consume_queue.decode(data, at)
                if unit.base_offset >= limit:
                    return
                yield unit
            place += len(data) // UNIT_SIZE
            most = min(2 * most, _MOST_AT_ONCE)

    def place_of(self, queue_offset: int) -> int:
        """Return the number of the first unit whose batch ends after a queue offset.

        Raises:
            DiskError: as for `unit`.
            StoreError: as for `unit`.
        """
        low, high = self.places.first, self.places.end
        while low < high:
            middle = (low + high) // 2
            unit = self.unit(middle)
            if unit is not None and unit.end_offset <= queue_offset:
                low = middle + 1
            else:
                high = middle
        return low

    def next_file(self, queue_offset: int) -> int:
        """Return the first queue offset of the first file after a queue offset.

        `end` if no file follows.
        """
        for base in self.bases:
            try:
                unit = self.unit(base // UNIT_SIZE)
            except DiskError:
                raise  # The file exists.
            except StoreError:
                continue  # This file was removed, too.
            if unit is not None and unit.base_offset > queue_offset:
                return unit.base_offset
        return self.end

    def min_offset(self, min_physical_offset: int) -> int:
        """Return the first queue offset whose record is at or after a physical offset.

        `end` if no record is.
        """
        unit = self.unit(self.places.min_offset(min_physical_offset))
        return unit.base_offset if unit else self.end

    # Trim, recover

    def trim(self, min_physical_offset: int) -> int:
        """Remove the files whose records are all before a physical offset, never the last one."""
        return self.places.trim(min_physical_offset)

    def remove_file(self, base: int) -> None:
        """Remove one file."""
        self.places.remove_file(base)

    def forget(self) -> None:
        """Become a queue without files, which starts at 0 again."""
        self.places.forget()
        self.end = 0
