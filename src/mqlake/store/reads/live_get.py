"""Read messages of a queue of a live store from an offset on (docs/live-store.md, "Reading").

Upstream: `DefaultMessageStore.getMessage`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mqlake.dispatch.answers import Followed
from mqlake.dispatch.decode import decode
from mqlake.dispatch.kernel import Kernel, load
from mqlake.dispatch.queue_read import AT, FAULT, QUEUE_OFFSET, SIZE, LogPart, ReadLimits, Wanted
from mqlake.dispatch.verdict import MORE, OTHER
from mqlake.errors import DiskError, StoreError
from mqlake.formats.consume_queue import ENTRY, ENTRY_SIZE
from mqlake.formats.record import FAULT_REASONS, Fault
from mqlake.store.log.segments import CommitLog
from mqlake.store.queues.tag_filter import TagFilter
from mqlake.store.reads.columns_ahead import Kept
from mqlake.store.reads.live_result import LiveGetResult, SegmentMessages, Skipped
from mqlake.store.reads.read_ahead import ReadAhead
from mqlake.store.reads.warm_up import WarmUp
from mqlake.store.results import QueueRange, Status

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Longs
    from mqlake.store.queues.owned_queues import OwnedQueues

_NO_BYTES = np.frombuffer(b"", np.uint8)
_OTHER_REASON = "the record there has another topic, queue or queue offset"


class QueueReading:
    """How one queue is read: what to select, and the limits.

    Args:
        most_entries: maximum number of entries that one read examines, whether they match or not.
        kept: the columns of all queues that are created ahead.
    """

    def __init__(
        self,
        *,
        log: CommitLog,
        queues: OwnedQueues,
        wanted: Wanted,
        tags: TagFilter,
        most_entries: int,
        kept: Kept,
    ) -> None:
        self._log, self._queues = log, queues
        self._wanted, self._tags = wanted, tags
        self._topic, self._queue_id = wanted.topic.decode(), wanted.queue_id
        self._most_entries = most_entries
        self._kernel = load()
        self._warm_up = WarmUp(log, queues, wanted, self._kernel)
        self._ahead = (
            ReadAhead(log, queues, wanted, self._kernel, kept)
            if tags.chooses_all and not wanted.by_code
            else None
        )

    def get(self, offset: int, max_messages: int, max_bytes: int, confirmed: int) -> LiveGetResult:
        """Read from a queue offset on; nothing from the physical offset `confirmed` on."""
        queues, topic, queue_id = self._queues, self._topic, self._queue_id
        low, high = queues.min_offset(topic, queue_id), queues.max_offset(topic, queue_id)
        queue = QueueRange(low, high)
        if high == 0:
            return LiveGetResult(Status.NO_MESSAGE_IN_QUEUE, 0, queue)
        if offset < low:
            return LiveGetResult(Status.OFFSET_TOO_SMALL, low, queue)
        if offset == high:
            return LiveGetResult(Status.OFFSET_OVERFLOW_ONE, offset, queue)
        if offset > high:
            return LiveGetResult(Status.OFFSET_OVERFLOW_BADLY, high, queue)
        if self._ahead is not None:
            run = self._ahead.take(offset, max_messages, max_bytes, high, confirmed)
            if run is not None:
                at = offset + len(run.at)
                return LiveGetResult(Status.FOUND, at, queue, self._kernel, [run])
        walk = QueueWalk(self._kernel, self._log, self._wanted, self._tags, confirmed)
        end = min(high, offset + max(self._most_entries, max_messages))
        at, is_full = offset, False
        while at < end and not is_full and walk.messages < max_messages:
            in_file = queues.places_in_file(at)
            most = end - at if self._wanted.by_code else min(end - at, max_messages)
            try:
                # One file at a time: if one was removed, the others still exist.
                entries = queues.entries(topic, queue_id, at, min(most, in_file))
            except DiskError:
                raise  # The message exists: a reader must not continue after it.
            except StoreError:
                entries = b""
            if not entries:
                return walk.result(at, queue, min(high, at + in_file))
            count, is_full = walk.take(at, entries, max_messages, max_bytes)
            at += count
        return walk.result(at, queue)

    def warm_up(
        self, offset: int, max_messages: int, confirmed: int
    ) -> Callable[[], object] | None:
        """Return a job that reads the messages for `get` into memory: see `WarmUp.job`."""
        least = self._most_entries if self._wanted.by_code else 0
        if self._ahead is not None:
            if self._ahead.covers(offset, max_messages):
                return None
            least = self._ahead.about_to_find(offset, max_messages)
        count = max(least, max_messages)
        return self._warm_up.job(offset, count, confirmed)


class QueueWalk:
    """What one read has found so far."""

    def __init__(
        self,
        kernel: Kernel,
        log: CommitLog,
        wanted: Wanted,
        tags: TagFilter,
        confirmed: int,
    ) -> None:
        self._kernel, self._log, self._wanted, self._tags = kernel, log, wanted, tags
        self._view = memoryview(b"")
        self._part = LogPart(_NO_BYTES, 0, log.min_offset, confirmed)
        self._runs: list[SegmentMessages] = []
        self._skipped: list[Skipped] = []
        self.messages = self._bytes = 0
        self._misses_last = False

    def take(
        self, first: int, entries: bytes | memoryview, most: int, most_bytes: int
    ) -> tuple[int, bool]:
        """Follow entries, starting at a queue offset.

        Returns:
            The number of entries that were examined, and whether a limit was reached before the
            others.
        """
        packed, count, done = np.frombuffer(entries, np.uint8), len(entries) // ENTRY_SIZE, 0
        if not self.messages:
            self._enter(ENTRY.unpack_from(entries)[0])
        while done < count:
            rows = np.empty((4, count - done), np.int64)
            limits = ReadLimits(self.messages, self._bytes, most, most_bytes)
            followed = self._kernel.follow(
                packed[done * ENTRY_SIZE :], first + done, self._part, self._wanted, limits, rows
            )
            done += followed.entries
            is_whole = self._add(rows[:, : followed.rows], followed, first + done - 1)
            if followed.verdict == MORE:
                offset = ENTRY.unpack_from(entries, done * ENTRY_SIZE)[0]
                if not self._enter(offset):
                    self._skip(first + done, offset, Fault.SHORT)
                    done += 1
                    self._misses_last = True
            elif done < count and is_whole:
                return done, True
        return done, False

    def result(self, at: int, queue: QueueRange, next_file: int | None = None) -> LiveGetResult:
        """Return what was found before the queue offset `at`.

        Args:
            next_file: queue offset at which entries continue, if those at `at` were removed.
        """
        if self._runs:
            status = Status.FOUND
        elif next_file is not None:
            status, at = Status.OFFSET_FOUND_NULL, next_file
        elif self._misses_last:
            status = Status.MESSAGE_WAS_REMOVING
        else:
            status = Status.NO_MATCHED_MESSAGE
        return LiveGetResult(status, at, queue, self._kernel, self._runs, self._skipped)

    def _enter(self, offset: int) -> bool:
        """Open the segment of a physical offset; return whether there is one."""
        place = self._log.place(offset)
        if place is None:
            return False
        self._view = place.view
        buffer = np.frombuffer(place.view, np.uint8, place.end)
        self._part = LogPart(buffer, place.segment.base, self._part.low, self._part.high)
        return True

    def _add(self, rows: Longs, followed: Followed, last: int) -> bool:
        """Add the rows of good records; return whether all that were counted are good."""
        self._misses_last = False
        if followed.messages - self.messages != rows.shape[1]:
            missing = rows[FAULT] != Fault.GOOD
            for queue_offset, offset, _, fault in rows[:, missing].T.tolist():
                self._skip(queue_offset, offset, fault)
            self._misses_last = bool(missing[-1]) and int(rows[QUEUE_OFFSET, -1]) == last
            rows = rows.compress(
                ~missing, axis=1
            )  # The array must be contiguous, because kernels are compiled for that.
        self.messages, self._bytes = followed.messages, followed.bytes
        if not rows.shape[1]:
            return True
        run = SegmentMessages(self._view, self._part.buffer, rows[AT], rows[SIZE])
        if self._tags.chooses_all:
            self._runs.append(run)
            return True
        return self._add_tagged(run)

    def _add_tagged(self, run: SegmentMessages) -> bool:
        """Add the messages that have a chosen tag, not only its hash."""
        records = decode(run.buffer, run.at, run.sizes, self._kernel)
        matches = np.array([self._tags.matches(record) for record in records])
        if matches.all():
            self._runs.append(run)
            return True
        kept = run._replace(at=run.at[matches], sizes=run.sizes[matches])
        if len(kept.at):
            self._runs.append(kept)
        self.messages -= len(run.at) - len(kept.at)
        self._bytes -= int(run.sizes.sum() - kept.sizes.sum())
        return False

    def _skip(self, queue_offset: int, offset: int, fault: int) -> None:
        if fault == Fault.SHORT and 0 <= offset < self._part.low:
            return  # It was trimmed with the log.
        reason = _OTHER_REASON if fault == OTHER else FAULT_REASONS[Fault(fault)]
        self._skipped.append(Skipped(queue_offset, offset, reason))
