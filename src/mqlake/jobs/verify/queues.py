"""Check consume queue entries against records, and records against entries."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from mqlake.dispatch.columns import QUEUE_ENTRY
from mqlake.formats import consume_queue
from mqlake.formats.consume_queue import BLANK_ENTRY, ENTRY_SIZE, QueueEntry
from mqlake.formats.consume_queue_ext import is_address
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.queues.deletions import DeadRecords
from mqlake.jobs.queues.files import MAX_QUEUE_OFFSET
from mqlake.jobs.queues.intervals import Interval, Intervals
from mqlake.jobs.queues.offset_allocation import MOST_STRETCHES
from mqlake.jobs.queues.runs import EntryRun, QueueName
from mqlake.jobs.verify.findings import EntryFindings
from mqlake.jobs.verify.log_bounds import LogBounds
from mqlake.jobs.verify.queue_bytes import QueueEntryReader
from mqlake.storage.local import LocalDirectory
from mqlake.store.log.scan import head_at
from mqlake.store.log.segments import CommitLog

_AT_ONCE = 1 << 16
"""Entries that are processed together."""


class RunCheck:
    """Compare the entries that records should have with those in the files.

    `undispatched_from`: physical offset from which a missing entry is not damage; neither is an
    incomplete one, if a broker `is_writing` the entries. No entry should name a record of `dead`.
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
        self._bytes = QueueEntryReader(store)
        self._log, self._dead = log, dead
        self._undispatched_from, self._is_writing = undispatched_from, is_writing
        self._stated: dict[QueueName, Intervals] = {}
        self.findings = EntryFindings()

    def stated(self) -> dict[QueueName, list[Interval]]:
        """Return the queue offsets in the records."""
        return {queue: list(offsets) for queue, offsets in self._stated.items()}

    def check(self, run: EntryRun) -> None:
        """Compare one run; it is counted entry by entry."""
        stated = self._stated.setdefault(run.queue, Intervals())
        is_far = len(stated) >= MOST_STRETCHES and run.first > stated.end
        if is_far or run.first < 0 or run.end > MAX_QUEUE_OFFSET:
            self._refuse(run)
            return
        stated.add(run.first, run.end)
        if (found := self._bytes.read(run.queue, run.first, run.end)) == bytes(run.entries):
            self.findings.good += run.end - run.first
        else:
            for number in range(run.end - run.first):
                at = number * ENTRY_SIZE
                expected = consume_queue.decode(run.entries, at)
                actual = consume_queue.decode(found, at)
                self._check_one(run.queue, run.first + number, expected, actual)

    def _check_one(
        self, queue: QueueName, queue_offset: int, expected: QueueEntry, actual: QueueEntry
    ) -> None:
        findings = self.findings
        if actual == expected or (actual[:2] == expected[:2] and is_address(actual.tags_code)):
            findings.good += 1
            return
        record = f"the record at physical offset {expected.physical_offset}"
        if self._is_writing and expected.physical_offset >= self._undispatched_from:
            findings.undispatched += 1
        elif actual == BLANK_ENTRY or not consume_queue.is_written(actual):
            if expected.physical_offset >= self._undispatched_from:
                findings.undispatched += 1
            else:
                place = self._bytes.place(queue, queue_offset)
                findings.missing.add_at(*place, ENTRY_SIZE, f"there is no entry for {record}")
        elif self._is_earlier_twin(queue, queue_offset, expected, actual):
            findings.repeated += 1
        else:
            place = self._bytes.place(queue, queue_offset)
            reason = f"{tuple(actual)}, but {record} requires {tuple(expected)}"
            findings.wrong.add_at(*place, ENTRY_SIZE, reason)

    def _is_earlier_twin(
        self, queue: QueueName, queue_offset: int, expected: QueueEntry, actual: QueueEntry
    ) -> bool:
        """Return whether an earlier record contains the same queue offset, and therefore owns
        it.
        """
        dead_before = self._dead.before(queue.topic)
        if not dead_before <= actual.physical_offset < expected.physical_offset:
            return False
        head = head_at(self._log, actual.physical_offset)
        return (
            head is not None
            and (head.topic.decode(), head.queue_id, head.queue_offset) == (*queue, queue_offset)
            and head.size == actual.size
        )

    def _refuse(self, run: EntryRun) -> None:
        for at in range(0, len(run.entries), ENTRY_SIZE):
            offset = consume_queue.decode(run.entries, at).physical_offset
            segment = self._log.segment_at(offset)
            if segment is not None:
                reason = f"the record contains the queue offset {run.first}, which is impossible"
                self.findings.wrong.add_at(segment.path, offset - segment.base, 0, reason)


class QueueFilesJob(msgspec.Struct, frozen=True):
    """The queues that one task searches for entries without a record.

    `log` is [first, end) of the log, physical offsets; `damaged` the stretches in it without a good
    record. `queues` are those to check, each with the queue offsets in its living records.
    """

    store: str
    log: Interval
    damaged: list[Interval]
    dead: DeadRecords
    queues: list[tuple[QueueName, list[Interval]]]


@reports_disk_faults
def check_queue_files(job: QueueFilesJob) -> EntryFindings:
    """Find the entries of whole queues that belong to no record."""
    source = QueueEntryReader(LocalDirectory(job.store))
    bounds = LogBounds(job.log, job.damaged)
    findings = EntryFindings()
    for queue, stated in job.queues:
        known, dead_before = Intervals(stated), job.dead.before(queue.topic)
        for start, stop in source.written(queue):
            for first, end in known.missing(start, stop):
                for at in range(first, end, _AT_ONCE):
                    data = source.read(queue, at, min(end, at + _AT_ONCE))
                    entries = np.frombuffer(data, QUEUE_ENTRY)
                    _sort_out(
                        queue,
                        at,
                        entries,
                        bounds=bounds,
                        source=source,
                        findings=findings,
                        dead_before=dead_before,
                    )
    return findings


def _sort_out(
    queue: QueueName,
    first: int,
    entries: NDArray[np.void],
    *,
    bounds: LogBounds,
    source: QueueEntryReader,
    findings: EntryFindings,
    dead_before: int,
) -> None:
    """Find the origin of entries that belong to no record."""
    offsets = entries["physical_offset"].astype(np.int64)
    written = (offsets >= 0) & (entries["size"] > 0)
    blank = entries == np.array(BLANK_ENTRY, QUEUE_ENTRY)
    findings.blank += int(np.count_nonzero(blank))
    for number in bounds.sort_out(offsets, written & ~blank, findings, dead_before):
        if source.read(queue, first + number, first + number + 1) != entries[number].tobytes():
            continue  # A broker was writing it when it was read.
        place = source.place(queue, first + number)
        reason = (
            "there is no record for the entry "
            f"{consume_queue.QueueEntry(*entries[number].tolist())}"
        )
        findings.dangling.add_at(*place, ENTRY_SIZE, reason)
