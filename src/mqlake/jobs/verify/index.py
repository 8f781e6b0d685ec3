"""Check index entries against records, records against entries, and index files by themselves."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from mqlake.dispatch.batch import Batch
from mqlake.dispatch.derived.index_entries import relink
from mqlake.dispatch.gap import Gap
from mqlake.formats import index_file
from mqlake.formats.damage import Damage
from mqlake.formats.index_file import ENTRY_SIZE, IndexHeader
from mqlake.formats.record import Fault
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.queues.intervals import Interval, Intervals
from mqlake.jobs.verify.findings import EXAMPLES, EntryFindings
from mqlake.jobs.verify.log_bounds import LogBounds, Stretches
from mqlake.storage.local import LocalDirectory
from mqlake.store.index.index_files import IndexFiles
from mqlake.store.log.scan import head_at
from mqlake.store.log.segments import CommitLog, open_log

_ENTRY = np.dtype(
    [("hash", ">i4"), ("physical_offset", ">i8"), ("seconds", ">i4"), ("previous", ">i4")]
)
_MAX_INT = 0x7FFFFFFF
_LONGEST = (1 << 63) - 1
_AT_ONCE = 1 << 20

Entries = NDArray[np.void]


class IndexPlan(msgspec.Struct, frozen=True):
    """One index file, if it can be read: `entries` of them from number 1 on.

    `ordered` means that their physical offsets ascend; the timestamp is the header's
    (milliseconds).
    """

    path: str
    slots: int
    entries: int
    begin_timestamp: int
    ordered: bool = True


class IndexFileJob(msgspec.Struct, frozen=True):
    """One index file that is checked by itself.

    `is_growing`: a broker is adding entries; the entries in the plan do not change.
    """

    store: str
    plan: IndexPlan
    header: IndexHeader
    is_growing: bool = False

    def of_live_store(self) -> IndexFileJob:
        """Return the job for a file to which a broker is adding entries."""
        return msgspec.structs.replace(self, is_growing=True)


class IndexFileCheck(msgspec.Struct, frozen=True):
    """The state of an index file by itself: its plan, completed, and its damage."""

    plan: IndexPlan
    damage: list[Damage]


def plan_index(store: LocalDirectory) -> tuple[list[IndexFileJob], list[Damage]]:
    """Return a job for each index file, oldest first, and the files that cannot be read."""
    index = IndexFiles.open(store)
    jobs: list[IndexFileJob] = []
    for file in index.files:
        count = min(file.header.index_count, file.sizes.max_entries) - 1
        plan = IndexPlan(file.path, file.sizes.slots, count, file.header.begin_timestamp)
        jobs.append(IndexFileJob(str(store.root), plan, file.header))
    return jobs, index.damage


@reports_disk_faults
def check_index_file(job: IndexFileJob) -> IndexFileCheck:
    """Check header, slots, links and order of one index file."""
    store = LocalDirectory(job.store)
    plan, header = job.plan, job.header
    file = store.open(plan.path)
    damage: list[Damage] = []

    def report(at: int, length: int, reason: str) -> None:
        damage.append(Damage(plan.path, at, length, reason))

    links = relink(file.view(), plan.slots, plan.entries + 1)
    if links.wrong_links:
        at = index_file.entry_at(plan.slots, links.first_wrong_link)
        report(at, ENTRY_SIZE, f"{links.wrong_links} links are wrong; this is the first")
    wrong_slots, first_wrong_slot = links.wrong_slots, links.first_wrong_slot
    if wrong_slots and job.is_growing:
        wrong_slots, first_wrong_slot = _wrong_slots(file.view(), plan)
    if wrong_slots:
        at = index_file.HEADER_SIZE + first_wrong_slot * index_file.SLOT_SIZE
        reason = f"{wrong_slots} slots do not lead to their last entry; this is the first"
        report(at, index_file.SLOT_SIZE, reason)
    if links.used_slots != header.slot_count and not job.is_growing:
        reason = (
            f"the header counts {header.slot_count} slots in use, but there are {links.used_slots}"
        )
        report(0, index_file.HEADER_SIZE, reason)
    offsets = _entries(file.view(), plan)["physical_offset"]
    falls = np.flatnonzero(np.diff(offsets.astype(np.int64)) < 0)
    if len(falls):
        at = index_file.entry_at(plan.slots, int(falls[0]) + 2)
        report(
            at, ENTRY_SIZE, f"{len(falls)} entries are not in the log's order; this is the first"
        )
    log = open_log(store)
    if reason := _header_fault(log, header, offsets, is_growing=job.is_growing):
        report(0, index_file.HEADER_SIZE, reason)
    log.close()
    return IndexFileCheck(msgspec.structs.replace(plan, ordered=not len(falls)), damage)


def _wrong_slots(view: memoryview, plan: IndexPlan) -> tuple[int, int]:
    """Return how many slots of a growing file are wrong, and the first of them.

    A slot that leads to an entry after those in the plan is correct: it was changed since.
    """
    entries, end = _entries(view, plan), index_file.HEADER_SIZE + plan.slots * index_file.SLOT_SIZE
    expected = np.zeros(plan.slots, np.int64)
    # If a slot occurs twice, the later number remains.
    hashes = entries["hash"].astype(np.int64)
    expected[hashes % plan.slots] = np.arange(1, 1 + len(hashes))
    slots = np.frombuffer(view[index_file.HEADER_SIZE : end], ">i4").astype(np.int64)
    wrong = np.flatnonzero((slots != expected) & (slots <= plan.entries))
    return len(wrong), int(wrong[0]) if len(wrong) else 0


def _header_fault(
    log: CommitLog, header: IndexHeader, offsets: NDArray[np.int64], *, is_growing: bool
) -> str | None:
    if not len(offsets):
        return None
    first, last = int(offsets[0]), int(offsets[-1])
    if is_growing:
        # The file's end was read while the broker moved it.
        header = header._replace(end_physical_offset=last)
    if (header.begin_physical_offset, header.end_physical_offset) != (first, last):
        return (
            f"the header covers {header.begin_physical_offset} … "
            f"{header.end_physical_offset}, but the entries {first} … {last}"
        )
    for name, offset, stated in (
        ("begin", first, header.begin_timestamp),
        ("end", last, header.end_timestamp),
    )[: 1 if is_growing else 2]:
        head = head_at(log, offset)
        if head is not None and head.store_timestamp != stated:
            return (
                f"the header's {name} timestamp is {stated}, but its record's is "
                f"{head.store_timestamp}"
            )
    return None


def _entries(view: memoryview, plan: IndexPlan) -> Entries:
    start = index_file.entry_at(plan.slots, 1)
    end = index_file.entry_at(plan.slots, 1 + plan.entries)
    return np.frombuffer(view[start:end], _ENTRY)


class _IndexEntries(NamedTuple):
    """Some consecutive entries of one file: the first has number `number`."""

    plan: IndexPlan
    number: int
    entries: Entries


class _ExpectedKeys(NamedTuple):
    """The index entries that some records should have, in order."""

    hashes: NDArray[np.int32]
    offsets: NDArray[np.int64]
    times: NDArray[np.int64]

    def cut(self, start: int, end: int) -> _ExpectedKeys:
        return _ExpectedKeys(self.hashes[start:end], self.offsets[start:end], self.times[start:end])


class KeyCheck:
    """Compare the index entries that records should have with those in the files.

    `undispatched_from`: physical offset from which a missing entry is not damage.
    """

    def __init__(
        self,
        store: LocalDirectory,
        log: CommitLog,
        plans: Sequence[IndexPlan],
        undispatched_from: int,
    ) -> None:
        self._log = log
        self._plans = plans
        self._entries = [_entries(store.open(plan.path).view(), plan) for plan in plans]
        self._undispatched_from = undispatched_from
        self.findings = EntryFindings()

    def check(self, batch: Batch | None, start: int, end: int, gaps: Sequence[Gap]) -> None:
        """Compare the keys of a batch with the entries of physical offsets [start, end).

        `gaps` are those that the scan has found so far. Without a batch there should be no entry.
        """
        expected = _NO_KEYS if batch is None else _keys(batch)
        parts = list(self._parts(start, end))
        if self._all_equal(expected, parts):
            self.findings.good += len(expected.hashes)
        elif not parts:
            self._report_missing(expected)
        else:
            self._compare(expected, parts, gaps)

    def _parts(self, start: int, end: int) -> Iterator[_IndexEntries]:
        for plan, entries in zip(self._plans, self._entries, strict=True):
            offsets = entries["physical_offset"]
            if plan.ordered:
                first = bisect_left(offsets, start)
                last = bisect_left(offsets, end, first)
                if first < last:
                    yield _IndexEntries(plan, first + 1, entries[first:last])
            else:
                for row in np.flatnonzero((offsets >= start) & (offsets < end)).tolist():
                    yield _IndexEntries(plan, row + 1, entries[row : row + 1])

    def _all_equal(self, expected: _ExpectedKeys, parts: Sequence[_IndexEntries]) -> bool:
        if len(expected.hashes) != sum(len(part.entries) for part in parts):
            return False
        at = 0
        for part in parts:
            end = at + len(part.entries)
            if not _equal(expected.cut(at, end), part):
                return False
            at = end
        return True

    def _report_missing(self, expected: _ExpectedKeys) -> None:
        due = expected.offsets < self._undispatched_from
        missing = np.flatnonzero(due)
        self.findings.undispatched += len(due) - len(missing)
        for row in missing[:EXAMPLES].tolist():
            self._missing(int(expected.offsets[row]), int(expected.hashes[row]))
        self.findings.missing.add(len(missing[EXAMPLES:]))

    def _missing(self, offset: int, key_hash: int) -> None:
        segment = self._log.segment_at(offset)
        if segment is not None:
            reason = f"the record lacks an index entry of key hash {key_hash}"
            at = offset - segment.base
            self.findings.missing.add_at(segment.path, at, 0, reason)

    def _compare(
        self, expected: _ExpectedKeys, parts: Sequence[_IndexEntries], gaps: Sequence[Gap]
    ) -> None:
        columns = (column.tolist() for column in expected)
        times: dict[tuple[int, int], int] = {}
        due: Counter[tuple[int, int]] = Counter()
        for key_hash, offset, time in zip(*columns, strict=True):
            due[offset, key_hash] += 1
            times[offset, key_hash] = time
        bounds = LogBounds(
            (0, _LONGEST),
            [
                (g.physical_offset, g.physical_offset + g.length)
                for g in gaps
                if g.fault is not Fault.CRC
            ],
        )
        for part in parts:
            unknown = np.zeros(len(part.entries), np.bool_)
            for row, (key_hash, offset, seconds, _) in enumerate(part.entries.tolist()):
                key = (offset, key_hash)
                if due[key] > 0:
                    due[key] -= 1
                    self._count(part, row, seconds, times[key])
                elif key in times:
                    self.findings.repeated += 1
                else:
                    unknown[row] = True
            offsets = part.entries["physical_offset"].astype(np.int64)
            for row in bounds.sort_out(offsets, unknown, self.findings):
                at = index_file.entry_at(part.plan.slots, part.number + row)
                reason = f"no record at physical offset {offsets[row]} has this key"
                self.findings.dangling.add_at(part.plan.path, at, ENTRY_SIZE, reason)
        for (offset, key_hash), count in due.items():
            for _ in range(count):
                if offset >= self._undispatched_from:
                    self.findings.undispatched += 1
                else:
                    self._missing(offset, key_hash)

    def _count(self, part: _IndexEntries, row: int, seconds: int, time: int) -> None:
        number = part.number + row
        due = index_file.seconds_since(part.plan.begin_timestamp, time)
        if number == 1 or seconds == due:
            self.findings.good += 1
            return
        at = index_file.entry_at(part.plan.slots, number)
        reason = f"{seconds} seconds after the file's begin, but its record comes after {due}"
        self.findings.wrong.add_at(part.plan.path, at, ENTRY_SIZE, reason)


def _keys(batch: Batch) -> _ExpectedKeys:
    counts = batch.records["key_count"]
    offsets = np.repeat(batch.records["physical_offset"], counts)
    times = np.repeat(batch.records["store_timestamp"], counts)
    return _ExpectedKeys(batch.keys["hash"], offsets, times)


_NO_KEYS = _ExpectedKeys(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))


def _equal(expected: _ExpectedKeys, part: _IndexEntries) -> bool:
    entries, begin = part.entries, part.plan.begin_timestamp
    # RocketMQ counts the seconds of a file's first entry from the end of the previous file.
    first = 1 if part.number == 1 else 0
    age = (expected.times - begin) // 1000 if begin > 0 else np.zeros(len(entries), np.int64)
    return bool(
        np.array_equal(expected.hashes, entries["hash"])
        and np.array_equal(expected.offsets, entries["physical_offset"])
        and np.array_equal(np.clip(age, 0, _MAX_INT)[first:], entries["seconds"][first:])
    )


class IndexRestJob(msgspec.Struct, frozen=True):
    """One index file, in which entries without a record are searched.

    `log` is [first, end) of the log, physical offsets; `covered` are the stretches that were
    already compared with the entries.
    """

    store: str
    plan: IndexPlan
    log: Interval
    covered: list[Interval]


@reports_disk_faults
def check_index_rest(job: IndexRestJob) -> EntryFindings:
    """Count the entries that point outside everything that was compared."""
    store = LocalDirectory(job.store)
    findings = EntryFindings()
    entries = _entries(store.open(job.plan.path).view(), job.plan)
    first, end = job.log
    between = Intervals(job.covered).missing(first, end)
    bounds, covered = LogBounds(job.log, between), Stretches(job.covered)
    for start in range(0, len(entries), _AT_ONCE):
        offsets = entries["physical_offset"][start : start + _AT_ONCE].astype(np.int64)
        bounds.sort_out(offsets, ~covered.hold(offsets), findings)
    return findings
