"""Read a queue from the files of its broker, if a task runs where they are.

A record that the files lack, because it is not dispatched, deleted or damaged, is left to the
broker.
"""

# pyright: basic
# Reason: NumPy's fields carry no types.

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from struct import Struct
from threading import Lock

import numpy as np

from mqlake.dispatch.kernel import load
from mqlake.dispatch.queue_read import AT, FAULT, SIZE, LogPart, ReadLimits, wanted
from mqlake.dispatch.verdict import MORE
from mqlake.errors import MqlakeError, StoreError
from mqlake.formats.consume_queue import ENTRY, ENTRY_SIZE
from mqlake.formats.record import MIN_SIZE, PHYSICAL_OFFSET_AT, check
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.query.live.brokers import Brokers, Mark
from mqlake.query.live.task import OffsetRange
from mqlake.query.reading.conditions import MOST
from mqlake.storage.local import LocalDirectory
from mqlake.store.log.segments import open_log
from mqlake.store.queues.queue_files import QueueFiles
from mqlake.store.snapshot import is_store

_MOST_BYTES = 2 << 20
_LONG = Struct(">q")


class LocalQueue:
    """The records of one queue, in a store directory of this host."""

    def __init__(self, directory: LocalDirectory, queue: MessageQueue) -> None:
        self._files = QueueFiles(directory, queue.topic, queue.queue_id)
        self._wanted, self._kernel = wanted(queue.topic, queue.queue_id), load()
        self._log = open_log(directory)
        self._end = MOST
        self._reading = Lock()

    def close(self) -> None:
        """Let go of all files, once a read that another thread has begun is done."""
        with self._reading:
            self._end = 0
            self._log.close()

    def end_at(self, end: int) -> None:
        """Have no records from a queue offset on."""
        self._end = end

    def reach(self, start: int, end: int) -> int:
        """Return the queue offset after the last record before `end`; `start` without one there."""
        span = range(start, max(start, min(end, self._files.end)))
        return start + bisect_left(span, True, key=lambda offset: self.mark(offset) is None)

    def records(self, offset: int, most: int) -> bytes:
        """Return the records from a queue offset on, one after another; empty if it is not there.

        Args:
            most: records; an answer also ends after 2 MiB.
        """
        with self._reading:
            try:
                return b"".join(self._records(offset, min(most, self._end - offset)))
            except StoreError:
                return b""

    def _records(self, offset: int, most: int) -> list[memoryview]:
        entries = self._files.run(offset, max(0, min(most, _MOST_BYTES // MIN_SIZE)))
        packed = np.frombuffer(entries, np.uint8)
        found: list[memoryview] = []
        size, count = 0, len(entries) // ENTRY_SIZE
        while len(found) < count:
            done = len(found)
            place = self._log.place(ENTRY.unpack_from(entries, done * ENTRY_SIZE)[0])
            if place is None:
                break
            part = LogPart(
                np.frombuffer(place.view, np.uint8, place.end), place.segment.base, 0, MOST
            )
            limits = ReadLimits(done, size, count, _MOST_BYTES)
            rows = np.empty((4, count - done), np.int64)
            followed = self._kernel.follow(
                packed[done * ENTRY_SIZE :], offset + done, part, self._wanted, limits, rows
            )
            rows = rows[:, : followed.rows]
            good = rows[:, : int((rows[FAULT] == 0).argmin())] if rows[FAULT].any() else rows
            for at, length in zip(good[AT].tolist(), good[SIZE].tolist(), strict=True):
                found.append(place.view[at : at + length])
            size = followed.bytes
            if good.shape[1] < rows.shape[1] or len(found) == done or followed.verdict != MORE:
                break
        return found

    def mark(self, offset: int) -> Mark | None:
        """Return the mark of the record at a queue offset, None if it is not there."""
        data = self.records(offset, 1)
        _, layout = check(data, 0, len(data))
        if layout is None:
            return None
        times = _LONG.unpack_from(data, layout.store_timestamp_at)
        return Mark(*_LONG.unpack_from(data, PHYSICAL_OFFSET_AT), *times)


async def find_local_queue(
    brokers: Brokers, paths: Iterable[str], one: OffsetRange
) -> LocalQueue | None:
    """Return the queue of a range in the first directory that has the broker's records of it.

    Hosts may have other stores at the same path, and a broker that was the master may have records
    that its group does not have. So the first and the last record there are compared with the
    broker's: logs that agree on a record are equal up to it.
    """
    for path in paths:
        try:
            directory = LocalDirectory(path)
            found = LocalQueue(directory, one.queue) if is_store(directory) else None
        except MqlakeError:
            continue  # Nothing of it may be readable here.
        if found is None:
            continue
        end = found.reach(one.start, one.end)
        found.end_at(end)
        if end > one.start and await _agree(brokers, found, one.queue, {one.start, end - 1}):
            return found
        found.close()
    return None


async def _agree(
    brokers: Brokers, found: LocalQueue, queue: MessageQueue, offsets: set[int]
) -> bool:
    """Return whether the broker has the records of the files at queue offsets."""
    for offset in sorted(offsets):
        mark = found.mark(offset)
        if mark is None or mark != await brokers.mark(queue, offset):
            return False
    return True
