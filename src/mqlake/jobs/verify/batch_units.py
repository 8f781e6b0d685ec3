"""Check the units of batch consume queues against records (docs/formats/batch_consume_queue.md)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice

import numpy as np

from mqlake.formats.batch_consume_queue import MOST_QUEUE_OFFSET, UNIT_SIZE, BatchQueueUnit
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.queues.deletions import DeadRecords
from mqlake.jobs.queues.intervals import Interval, Intervals
from mqlake.jobs.queues.offset_allocation import MOST_STRETCHES
from mqlake.jobs.queues.runs import QueueName
from mqlake.jobs.verify.batch_unit_files import BatchUnitFiles, UnitPosition
from mqlake.jobs.verify.findings import EntryFindings
from mqlake.jobs.verify.log_bounds import LogBounds
from mqlake.jobs.verify.queues import QueueFilesJob
from mqlake.storage.local import LocalDirectory
from mqlake.store.log.scan import head_of
from mqlake.store.log.segments import CommitLog

_OPEN_QUEUES = 64
_AT_ONCE = 4096
"""Maximum number of units without a record that are processed together."""


class UnitCheck:
    """Compares the units that records should have with those in the files.

    From physical offset `undispatched_from` on, a missing unit is not damage; nor is an incomplete
    one while a broker `is_writing` the units. No unit should name a record of `dead`.
    """

    def __init__(
        self,
        store: LocalDirectory,
        log: CommitLog,
        undispatched_from: int,
        dead: DeadRecords,
        *,
        is_writing: bool,
    ) -> None:
        self._store, self._log, self._dead = store, log, dead
        self._undispatched_from, self._is_writing = undispatched_from, is_writing
        self._files: OrderedDict[QueueName, BatchUnitFiles] = OrderedDict()
        self._stated: dict[QueueName, Intervals] = {}
        self.findings = EntryFindings()

    def stated(self) -> dict[QueueName, list[Interval]]:
        """Return the queue offsets in the records."""
        return {queue: list(offsets) for queue, offsets in self._stated.items()}

    def close(self) -> None:
        """Close the open files."""
        for files in self._files.values():
            files.close()
        self._files.clear()

    def check(self, queue: QueueName, units: Iterable[BatchQueueUnit]) -> None:
        """Compare units of a queue. Units of the next call must be later in the log."""
        stated = self._stated.setdefault(queue, Intervals())
        files = self._files_of(queue)
        for unit in units:
            is_far = len(stated) >= MOST_STRETCHES and unit.base_offset > stated.end
            if is_far or unit.base_offset < 0 or unit.end_offset > MOST_QUEUE_OFFSET:
                self._refuse(unit)
            elif unit.base_offset < stated.end:
                stated.add(unit.base_offset, unit.end_offset)
                self.findings.repeated += 1  # Brokers write no unit for offsets that decrease.
            else:
                stated.add(unit.base_offset, unit.end_offset)
                self._check_one(queue, unit, files)

    def _files_of(self, queue: QueueName) -> BatchUnitFiles:
        files = self._files.pop(queue, None) or BatchUnitFiles(self._store, queue)
        self._files[queue] = files
        if len(self._files) > _OPEN_QUEUES:
            self._files.popitem(last=False)[1].close()
        return files

    def _check_one(self, queue: QueueName, expected: BatchQueueUnit, files: BatchUnitFiles) -> None:
        findings, at = self.findings, expected.physical_offset
        place, actual = files.find(expected.base_offset)
        if actual == expected:
            findings.good += 1
        elif at >= self._undispatched_from and (actual is None or self._is_writing):
            findings.undispatched += 1
        elif self._is_repeated(queue, expected, actual or files.beyond(expected.base_offset)):
            findings.repeated += 1
        elif actual is None:
            reason = f"no entry for the record at physical offset {at}"
            findings.missing.add_at(*place, UNIT_SIZE, reason)
        else:
            reason = f"{tuple(actual)}, but the record requires {tuple(expected)}"
            findings.wrong.add_at(*place, UNIT_SIZE, reason)

    def _is_repeated(
        self, queue: QueueName, expected: BatchQueueUnit, found: BatchQueueUnit | None
    ) -> bool:
        """Return whether an earlier record with a unit contains these or later queue offsets."""
        if found is None:
            return False
        at, dead_before = found.physical_offset, self._dead.before(queue.topic)
        if not dead_before <= at < expected.physical_offset:
            return False
        head = head_of(self._log, expected.physical_offset, queue, found.base_offset, at)
        return head is not None and head.size == found.size

    def _refuse(self, unit: BatchQueueUnit) -> None:
        segment = self._log.segment_at(unit.physical_offset)
        if segment is not None:
            at = unit.physical_offset - segment.base
            reason = f"the record contains the queue offset {unit.base_offset}, which is impossible"
            self.findings.wrong.add_at(segment.path, at, 0, reason)


@reports_disk_faults
def check_unit_files(job: QueueFilesJob) -> EntryFindings:
    """Find the units of whole queues that belong to no record, or are out of order."""
    bounds, findings = LogBounds(job.log, job.damaged), EntryFindings()
    for queue, stated in job.queues:
        with closing(BatchUnitFiles(LocalDirectory(job.store), queue)) as files:
            unknown = _unknown(files, Intervals(stated), findings)
            dead_before = job.dead.before(queue.topic)
            while some := list(islice(unknown, _AT_ONCE)):
                _sort_out(some, files, bounds, findings, dead_before)
    return findings


def _unknown(
    files: BatchUnitFiles, stated: Intervals, findings: EntryFindings
) -> Iterator[tuple[UnitPosition, BatchQueueUnit]]:
    """Yield the units that belong to no record. The others must be in order of queue offset."""
    before = -1
    for place, unit in files.written():
        if not stated.overlaps(unit.base_offset, unit.end_offset):
            yield place, unit
            continue
        if unit.base_offset <= before and files.read(place) == unit:
            reason = f"{tuple(unit)} after an entry with the same or later queue offsets"
            findings.wrong.add_at(*place, UNIT_SIZE, reason)
        before = unit.base_offset


def _sort_out(
    unknown: Sequence[tuple[UnitPosition, BatchQueueUnit]],
    files: BatchUnitFiles,
    bounds: LogBounds,
    findings: EntryFindings,
    dead_before: int,
) -> None:
    """Find the origin of units that belong to no record."""
    offsets = np.array([unit.physical_offset for _, unit in unknown], np.int64)
    chosen = np.ones(len(unknown), np.bool_)
    for number in bounds.sort_out(offsets, chosen, findings, dead_before):
        place, unit = unknown[number]
        if files.read(place) == unit:  # Otherwise a broker was writing it.
            reason = f"there is no record for the entry {tuple(unit)}"
            findings.dangling.add_at(*place, UNIT_SIZE, reason)


def newest_unit(store: LocalDirectory, log: CommitLog, queues: Iterable[QueueName]) -> int:
    """Return the greatest physical offset that the last unit of a queue correctly names.

    -1 if no last unit is correct.
    """
    newest = -1
    for queue in queues:
        with closing(BatchUnitFiles(store, queue)) as files:
            last = files.last()
        if last is None or last.physical_offset <= newest:
            continue
        if head_of(log, log.limit, queue, last.base_offset, last.physical_offset):
            newest = last.physical_offset
    return newest
