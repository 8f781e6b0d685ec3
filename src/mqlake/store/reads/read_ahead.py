"""Find the messages after those that were read last, before they are requested.

A consumer that lags reads its queue in small consecutive steps. The targets of its entries are
looked up for many steps in one call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mqlake.dispatch.kernel import Kernel
from mqlake.dispatch.queue_read import AT, SIZE, LogPart, ReadLimits, Wanted
from mqlake.errors import StoreError
from mqlake.formats.consume_queue import ENTRY, ENTRY_SIZE
from mqlake.store.log.segments import CommitLog
from mqlake.store.reads.columns_ahead import ColumnsAhead, Kept
from mqlake.store.reads.live_result import SegmentMessages

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Longs
    from mqlake.store.queues.owned_queues import OwnedQueues

MESSAGES = 1024
BYTES = 1 << 20
"""Maximum number of messages that are looked up in one call."""


class _Known(NamedTuple):
    """Consecutive messages of a queue in one segment."""

    first: int
    """Queue offset of the first."""
    base: int
    """Physical offset that `at` counts from."""
    at: Longs
    sizes: Longs
    sums: Longs
    """Bytes of all messages before each, and of all."""
    columns: ColumnsAhead


class ReadAhead:
    """The known messages of a queue after the last read. For queues that are read without a filter.

    It keeps no file open, so that deleted files free their space.

    Args:
        kept: the columns of all queues that are created ahead.
    """

    def __init__(
        self,
        log: CommitLog,
        queues: OwnedQueues,
        wanted: Wanted,
        kernel: Kernel,
        kept: Kept,
    ) -> None:
        self._kept = kept
        self._log, self._queues, self._wanted, self._kernel = log, queues, wanted, kernel
        self._topic, self._queue_id = wanted.topic.decode(), wanted.queue_id
        self._known: _Known | None = None
        self._next = -1

    def covers(self, offset: int, count: int) -> bool:
        """Return whether messages were read already, so that reading them again waits for no
        disk.
        """
        known = self._known
        return known is not None and known.first <= offset <= known.first + len(known.at) - count

    def about_to_find(self, offset: int, most: int) -> int:
        """Return how many messages `take` would read from an offset on."""
        left = self._queues.max_offset(self._topic, self._queue_id) - offset
        return self._count(offset, left) if self._is_next(offset) and left > most else 0

    def take(
        self, offset: int, most: int, most_bytes: int, end: int, confirmed: int
    ) -> SegmentMessages | None:
        """Return the messages from a queue offset on, if they are known or can be found.

        None if the step does not follow the last one, is so long that nothing would be found ahead
        of it, or something is unusual: then they must be read one step at a time.

        Args:
            most: the maximum number; fewer are returned if `most_bytes` is reached, but at least
                one.
            end: queue offset after the last one.
        """
        is_next = self._is_next(offset)
        self._next = offset + most
        if end - offset <= most or most >= MESSAGES:
            return None
        if not self.covers(offset, most):
            self._forget()
            self._known = self._find(offset, end, confirmed) if is_next else None
            if not self.covers(offset, most):
                return None
        known = self._known
        assert known is not None
        place = self._log.place(known.base)
        if place is None:
            self._forget()
            return None
        sums, start = known.sums, offset - known.first
        stop = start + most
        before = sums.item(start)
        if sums.item(stop) - before > most_bytes:
            stop = max(start + 1, int(sums.searchsorted(before + most_bytes, "right")) - 1)
            self._next = known.first + stop
        begin, end = known.at.item(start), known.at.item(stop - 1) + known.sizes.item(stop - 1)
        return SegmentMessages(
            place.view,
            np.frombuffer(place.view, np.uint8, place.end),
            known.at[start:stop],
            known.sizes[start:stop],
            end - begin == sums.item(stop) - before,
            columns=known.columns,
            first=start,
        )

    def _is_next(self, offset: int) -> bool:
        """Return whether a queue offset follows the last read."""
        return offset == self._next

    def _forget(self) -> None:
        self._known = None

    def _count(self, offset: int, left: int) -> int:
        return min(MESSAGES, left, self._queues.places_in_file(offset))

    def _find(self, offset: int, end: int, confirmed: int) -> _Known | None:
        """Return the good messages from a queue offset on, None if any is not good."""
        count = self._count(offset, end - offset)
        try:
            entries = self._queues.entries(self._topic, self._queue_id, offset, count)
        except StoreError:
            return None
        place = self._log.place(ENTRY.unpack_from(entries)[0]) if entries else None
        if place is None:
            return None
        base = place.segment.base
        buffer = np.frombuffer(place.view, np.uint8, place.end)
        part = LogPart(buffer, base, self._log.min_offset, confirmed)
        rows = np.empty((4, len(entries) // ENTRY_SIZE), np.int64)
        packed, limits = np.frombuffer(entries, np.uint8), ReadLimits(0, 0, count, BYTES)
        found = self._kernel.follow(packed, offset, part, self._wanted, limits, rows)
        if not found.entries == found.rows == found.messages:
            return None
        at, sizes = rows[AT, : found.rows].copy(), rows[SIZE, : found.rows].copy()
        sums = np.zeros(len(sizes) + 1, np.int64)
        sizes.cumsum(out=sums[1:])
        columns = ColumnsAhead(at, sizes, self._kernel, self._kept)
        return _Known(offset, base, at, sizes, sums, columns)
