"""Walk the log to its end: which stretches have records, and where each queue goes on in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mqlake.dispatch.batch import Batch
from mqlake.formats.record import Fault
from mqlake.store.log.scan import Queue, search
from mqlake.store.log.segments import CommitLog
from mqlake.store.log.steps import LogSteps

Progress = Callable[[int, int], None]
"""Told how far recovery is: bytes of the log that it has looked at or dispatched, and all those."""


class Stretch(NamedTuple):
    """Physical offsets between which records follow each other, all of them good."""

    start: int
    end: int


class Walked(NamedTuple):
    """What a walk met.

    Attributes:
        stretches: those with records, ascending.
        end: physical offset where the walk ended.
        fault: what is there instead of a record.
        firsts: the queue offset of each queue's first record.
    """

    stretches: tuple[Stretch, ...]
    end: int
    fault: Fault
    firsts: dict[Queue, int]


class LogWalk:
    """Walk a log whose bytes may be anything. Each walk is one object.

    Args:
        steps: reads the log.
        left_out: topics whose queues are not written.
        progress: told now and then how far it is.
    """

    def __init__(
        self,
        log: CommitLog,
        steps: LogSteps,
        left_out: frozenset[str],
        progress: Progress | None = None,
    ) -> None:
        self._log, self._steps, self._left_out, self._progress = log, steps, left_out, progress
        self._firsts: dict[Queue, int] = {}
        # By the queue's number in the table of `steps`.
        self._has_first = np.zeros(0, np.bool_)

    def to_first_fault(self, start: int) -> Walked:
        """Walk from where a record starts to the first place that is no good record.

        Raises:
            StoreError: the log cannot be read.
        """
        end, fault = self._walk(start, self._log.limit)
        stretches = (Stretch(start, end),) if end > start else ()
        return Walked(stretches, end, fault, self._firsts)

    def across_faults(self, end: int, fault: Fault) -> Walked:
        """Walk the whole log up to its end, behind damage too.

        Args:
            end: physical offset where the log ends.
            fault: what is there.

        Raises:
            StoreError: the log cannot be read.
        """
        stretches: list[Stretch] = []
        start = self._log.min_offset
        while start < end:
            stop, _ = self._walk(start, end)
            if stop > start:
                stretches.append(Stretch(start, stop))
            segment = self._log.segment_at(stop)
            if segment is None or stop >= end:
                break
            start = search(self._log, segment, stop + 1, min(segment.end, end))
        return Walked(tuple(stretches), end, fault, self._firsts)

    def _walk(self, start: int, limit: int) -> tuple[int, Fault]:
        at = start
        while at < limit:
            step = self._steps.step(at, limit, check=True)
            if step.batch is not None:
                self._note_firsts(step.batch)
            at = step.end
            if step.fault is not Fault.GOOD:
                return at, step.fault
            if self._progress is not None:
                self._progress(at - start, 2 * (limit - start))
        return at, Fault.SHORT

    def _note_firsts(self, batch: Batch) -> None:
        table, records = batch.table, batch.records
        if len(table) > len(self._has_first):
            self._has_first = np.pad(self._has_first, (0, len(table) - len(self._has_first)))
        elif self._has_first.all():
            return
        numbers = records["queue"]
        rows = np.flatnonzero((numbers >= 0) & ~self._has_first[numbers])
        found, firsts = np.unique(numbers[rows], return_index=True)
        self._has_first[found] = True
        offsets = records["queue_offset"][rows[firsts]]
        for number, offset in zip(found.tolist(), offsets.tolist(), strict=True):
            topic, queue_id = table[number]
            if (name := topic.decode()) not in self._left_out:
                self._firsts[name, queue_id] = offset
