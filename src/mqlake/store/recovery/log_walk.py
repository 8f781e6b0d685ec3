"""Walk the log to its end: find the stretches with records, and where each queue continues in
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np

from mqlake.dispatch.batch import Batch, Longs
from mqlake.dispatch.columns import RECORD, KeyColumns, RecordColumns
from mqlake.dispatch.queue_table import QueueTable
from mqlake.formats.record import Fault
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.log.scan import Queue, search
from mqlake.store.log.segments import CommitLog
from mqlake.store.log.steps import LogSteps, Step

Progress = Callable[[int, int], None]
"""Called with the progress of recovery: bytes of the log that were read or dispatched, and the
total.
"""


_MOST_KEPT = 128 << 20
"""Bytes of records and keys that a walk keeps, so that dispatch need not read the log again: those
of 2 GiB of messages of 1 KiB.
"""

_LONG = 8 << 20
"""Bytes of log from which a thread pays off."""

_WORDS = (RECORD.fields["queue"][1] + 4) // 8 if RECORD.fields else 0
"""Words of 8 bytes at the beginning of a row that dispatch reads: up to the column `queue`."""

_NO_BYTES = np.zeros(0, np.uint8)


class KeptRecords(NamedTuple):
    """The records of one step, as dispatch needs them.

    Attributes:
        words: i8[n, _WORDS], the beginnings of the rows of RECORD.
        keys: KEY[m], of those records.
        table: the queues by their numbers.
    """

    words: Longs
    keys: KeyColumns
    table: QueueTable


class Stretch(NamedTuple):
    """A part of the log with consecutive good records.

    Attributes:
        start, end: the physical offsets of the part.
        kept: the first of its records.
        read_end: physical offset up to which the others must be read.
    """

    start: int
    end: int
    kept: tuple[KeptRecords, ...]
    read_end: int

    def batches(self) -> Iterator[Batch]:
        """Yield the records that were kept; each batch overwrites the one before."""
        rows = np.zeros(max((len(part.words) for part in self.kept), default=0), RECORD)
        for part in self.kept:
            records = rows[: len(part.words)]
            _words(records)[:] = part.words
            yield Batch(_NO_BYTES, 0, records, part.keys, part.table)


class Walked(NamedTuple):
    """The result of a walk.

    Attributes:
        stretches: those with records, ascending.
        end: physical offset where the walk ended.
        fault: the result of the check at `end`.
        firsts: the queue offset of each queue's first record, without dead records.
        restarted: topics with a queue that has a record with queue offset 0 after other records.
    """

    stretches: tuple[Stretch, ...]
    end: int
    fault: Fault
    firsts: dict[Queue, int]
    restarted: set[str]


class LogWalk:
    """Walks a log whose bytes may be anything. Each object serves one walk.

    Args:
        steps: reads the log.
        incarnations: which records are dead.
        progress: called at intervals with the progress.
    """

    def __init__(
        self,
        log: CommitLog,
        steps: LogSteps,
        incarnations: Incarnations,
        progress: Progress | None = None,
    ) -> None:
        self._log, self._steps, self._progress = log, steps, progress
        self._incarnations = incarnations
        self._firsts: dict[Queue, int] = {}
        self._restarted = set[str]()
        self._room = _MOST_KEPT
        # By the queue's number in the table of `steps`: where its first record lies, -1 without
        # one, and before which physical offset its records are dead.
        self._first_at, self._before = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def to_first_fault(self, start: int) -> Walked:
        """Walk from the start of a record to the first bytes that are not a good record.

        Raises:
            StoreError: the log cannot be read.
        """
        stretch, fault = self._walk(start, self._log.limit)
        stretches = (stretch,) if stretch.end > start else ()
        return Walked(stretches, stretch.end, fault, self._firsts, self._restarted)

    def across_faults(self, end: int, fault: Fault) -> Walked:
        """Walk the whole log up to its end, past damage and missing files, too.

        Args:
            end: physical offset where the log ends.
            fault: the result of the check at the end.

        Raises:
            StoreError: the log cannot be read.
        """
        stretches: list[Stretch] = []
        start = self._log.min_offset
        while start < end:
            stretch, _ = self._walk(start, end)
            if (stop := stretch.end) > start:
                stretches.append(stretch)
            start = self._after_fault(stop, end)
        return Walked(tuple(stretches), end, fault, self._firsts, self._restarted)

    def _after_fault(self, stop: int, end: int) -> int:
        segment = self._log.segment_at(stop)
        if segment is not None:
            return search(self._log, segment, stop + 1, min(segment.end, end))
        # A file is missing, or shorter than it was: the log continues with the next one.
        return next((each.base for each in self._log.segments if each.base > stop), end)

    def batches_across_faults(self, start: int, end: int) -> Iterator[Batch]:
        """Yield the good records of a part of the log, past damage and missing files, too.

        Raises:
            StoreError: the log cannot be read.
        """
        while start < end:
            stop = start
            for step in self._read(start, end):
                if step.batch is not None:
                    yield step.batch
                stop = step.end
            start = self._after_fault(stop, end)

    def batches(self, start: int, limit: int) -> Iterator[Batch]:
        """Yield the good records of a part of the log; each batch may overwrite the one before.

        Raises:
            StoreError: the log cannot be read.
        """
        for step in self._read(start, limit):
            if step.batch is not None:
                yield step.batch

    def _walk(self, start: int, limit: int) -> tuple[Stretch, Fault]:
        at = read_end = start
        fault, kept = Fault.GOOD, list[KeptRecords]()
        for step in self._read(start, limit):
            is_kept = self._room > 0
            if step.batch is not None:
                self._note_firsts(step.batch)
                if is_kept:
                    kept.append(self._keep(step.batch))
            at, fault = step.end, step.fault
            read_end = at if is_kept else read_end
            if fault is Fault.GOOD and self._progress is not None:
                self._progress(at - start, 2 * (limit - start))
        return Stretch(start, at, tuple(kept), read_end), fault or Fault.SHORT

    def _read(self, start: int, limit: int) -> Iterator[Step]:
        """Yield the steps from the start of a record to the first fault, at most to `limit`.

        In a long log, each step is read and checked while the one before it is processed.
        """
        if start >= limit:
            return
        step = self._step(start, limit)
        with ThreadPoolExecutor(1) if limit - step.end > _LONG else nullcontext() as beside:
            while step.fault is Fault.GOOD and step.end < limit:
                ahead = beside and beside.submit(self._step, step.end, limit)
                yield step
                step = ahead.result() if ahead else self._step(step.end, limit)
        yield step

    def _step(self, start: int, limit: int) -> Step:
        return self._steps.step(start, limit, check=True)

    def _keep(self, batch: Batch) -> KeptRecords:
        words, keys = _words(batch.records).copy(), batch.keys.copy()
        self._room -= words.nbytes + keys.nbytes
        return KeptRecords(words, keys, batch.table)

    def _note_firsts(self, batch: Batch) -> None:
        table, records = batch.table, batch.records
        if (new := len(table) - len(self._first_at)) > 0:
            self._first_at = np.pad(self._first_at, (0, new), constant_values=-1)
            names = (table[number][0].decode() for number in range(len(table) - new, len(table)))
            befores = [self._incarnations.before(name) for name in names]
            self._before = np.append(self._before, np.array(befores, np.int64))
        numbers, offsets = records["queue"], records["queue_offset"]
        begins = offsets == 0
        if not len(table) or ((self._first_at >= 0).all() and not begins.any()):
            return
        at = records["physical_offset"]
        living = (numbers >= 0) & (at >= self._before[numbers])
        rows = np.flatnonzero(living & (self._first_at[numbers] < 0))
        found, firsts = np.unique(numbers[rows], return_index=True)
        rows = rows[firsts]
        self._first_at[found] = at[rows]
        for number, offset in zip(found.tolist(), offsets[rows].tolist(), strict=True):
            topic, queue_id = table[number]
            self._firsts[topic.decode(), queue_id] = offset
        again = numbers[living & begins & (at > self._first_at[numbers])]
        self._restarted.update(table[number][0].decode() for number in np.unique(again).tolist())


def _words(records: RecordColumns) -> Longs:
    """Return the beginnings of rows that dispatch reads; not copied."""
    return records.view(np.int64).reshape(len(records), -1)[:, :_WORDS]
