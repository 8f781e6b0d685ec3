"""Read messages into memory before they are requested, so that reading them blocks nobody.

Recently written messages are in memory. A consumer that lags far reads messages that the system
must fetch from the disk, page by page, and reading them in the store's thread would stop it
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mqlake.dispatch.columns import QUEUE_ENTRY
from mqlake.dispatch.kernel import Kernel
from mqlake.dispatch.queue_read import LogPart, ReadLimits, Wanted
from mqlake.errors import StoreError
from mqlake.formats.consume_queue import ENTRY, ENTRY_SIZE
from mqlake.storage.residency import is_in_memory
from mqlake.store.log.segments import CommitLog, SegmentPosition
from mqlake.store.queues.owned_queues import OwnedQueues

NEAR = 32 << 20
"""Bytes at the log's end that are assumed to be in memory."""

AHEAD = 256
"""Messages that are read into memory by one job; of so many that follow each other, one is looked
at."""

FAR_AHEAD = 2048
"""Messages that are looked at in one call: as long as all are in memory, calls are rare."""

_ALL = (1 << 63) - 1


class KnownWarm(NamedTuple):
    """Messages of a queue that are in memory: those from one queue offset to another, as long as
    the log ends before a physical offset.
    """

    first: int
    stop: int
    until: int


class WarmUp:
    """The messages of one queue that are known to be in memory."""

    def __init__(self, log: CommitLog, queues: OwnedQueues, wanted: Wanted, kernel: Kernel) -> None:
        self._log, self._queues, self._wanted, self._kernel = log, queues, wanted, kernel
        self._topic, self._queue_id = wanted.topic.decode(), wanted.queue_id
        # Queue offsets [from, to) are in memory, while the log ends before `until`.
        self._from = self._to = self._until = 0

    @property
    def known(self) -> KnownWarm:
        """The messages that `job` has found in memory."""
        return KnownWarm(self._from, self._to, self._until)

    def job(self, offset: int, count: int, confirmed: int) -> Callable[[], object] | None:
        """Return a job that reads messages into memory, for any thread; None if they are there.

        Args:
            offset: queue offset of the first.
            count: how many are about to be read; the following ones are checked, too.
            confirmed: physical offset before which messages may be read.
        """
        if self._from <= offset and offset + count <= self._to and confirmed < self._until:
            return None
        entries = self._entries(offset, max(count, FAR_AHEAD))
        first = ENTRY.unpack_from(entries)[0] if entries else 0
        place = self._log.place(first) if entries else None
        if place is None:
            return None
        self._from, self._until = offset, _ALL
        if first >= confirmed - NEAR:
            self._to, self._until = _ALL, confirmed + NEAR
            return None
        for ahead in (FAR_AHEAD, AHEAD):
            entries = entries[: max(count, ahead) * ENTRY_SIZE]
            self._to = offset + len(entries) // ENTRY_SIZE
            if self._are_in_memory(place, entries):
                return None
        packed = np.frombuffer(entries, np.uint8)
        buffer = np.frombuffer(place.view, np.uint8, place.end)
        part = LogPart(buffer, place.segment.base, self._log.min_offset, confirmed)
        rows = np.empty((4, len(entries) // ENTRY_SIZE), np.int64)
        limits = ReadLimits(0, 0, len(entries), _ALL)
        return lambda: self._kernel.follow(packed, offset, part, self._wanted, limits, rows)

    def _are_in_memory(self, place: SegmentPosition, entries: bytes) -> bool:
        """Return whether a sample of the messages, the first and the last among them, is there."""
        rows = np.frombuffer(entries, QUEUE_ENTRY)
        last, address = len(rows) - 1, np.frombuffer(place.view, np.uint8).ctypes.data
        for row in (*range(0, last, AHEAD), last):
            at = int(rows["physical_offset"][row]) - place.segment.base
            if 0 <= at < place.end and not is_in_memory(address + at, 1):
                return False
        return True

    def _entries(self, offset: int, count: int) -> bytes:
        """Return up to `count` entries that lie in one file, from a queue offset on."""
        low = self._queues.min_offset(self._topic, self._queue_id)
        high = self._queues.max_offset(self._topic, self._queue_id)
        if not low <= offset < high:
            return b""
        count = min(count, high - offset, self._queues.places_in_file(offset))
        try:
            return bytes(self._queues.entries(self._topic, self._queue_id, offset, count))
        except StoreError:
            return b""
