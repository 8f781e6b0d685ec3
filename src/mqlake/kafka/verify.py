"""Check a partition: every batch, and every index entry against the batches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import msgspec

from mqlake.errors import FormatError
from mqlake.formats.damage import Damage
from mqlake.formats.kafka import offset_index, time_index, transaction_index
from mqlake.formats.kafka.batch import MAGIC_V2, NO_TIMESTAMP, Batch
from mqlake.formats.kafka.file_name import Kind
from mqlake.kafka.partition import Partition
from mqlake.kafka.segment import LogSegment


class SegmentReport(msgspec.Struct, frozen=True, rename="camel"):
    """What there is in a segment, and what is wrong with it.

    Attributes:
        file: the log's path, relative to what was opened.
        base_offset, next_offset: the offsets it may have, and the one after its last batch.
        size: bytes of log.
        batches, records: whole and good ones; records as the batches say, 1 for each batch of
            version 0 and 1.
        index_entries, time_index_entries: how many there are.
        damage: stretches of its files, ascending by file and position.
    """

    file: str
    base_offset: int
    next_offset: int
    size: int
    batches: int
    records: int
    index_entries: int
    time_index_entries: int
    damage: list[Damage]


class PartitionReport(msgspec.Struct, frozen=True, rename="camel"):
    """The segments of a partition, ascending."""

    path: str
    segments: list[SegmentReport]

    @property
    def damage(self) -> list[Damage]:
        """All that is wrong."""
        return [damage for segment in self.segments for damage in segment.damage]


def verify_partition(
    partition: Partition, *, deep: bool = False, threads: int = 1
) -> PartitionReport:
    """Check all segments of a partition, `threads` at a time.

    What is checked: check sums and fields of every batch, offsets that go up, and that each index
    entry says of the log what is true of it. `deep` reads every record, too.
    """
    last = len(partition.segments) - 1

    def check(number: int) -> SegmentReport:
        segment = partition.segments[number]
        return verify_segment(segment, deep=deep, is_active=number == last)

    with ThreadPoolExecutor(threads) as pool:
        reports = list(pool.map(check, range(last + 1)))
    for before, after in pairwise(reports):
        if before.next_offset > after.base_offset:
            after.damage.insert(
                0,
                Damage(
                    after.file,
                    0,
                    after.size,
                    f"begins at offset {after.base_offset}, but the segment before it ends at"
                    f" {before.next_offset}",
                ),
            )
    return PartitionReport(partition.path, reports)


def verify_segment(
    segment: LogSegment, *, deep: bool = False, is_active: bool = False
) -> SegmentReport:
    """Check a segment; the end of an active one may be torn, or not written yet."""
    pass_ = _Pass(segment, deep)
    position = 0
    while position < segment.size:
        walk = segment.log.batches(position, check=True)
        for batch in walk:
            pass_.take_in(batch)
        position = walk.position
        if position >= segment.size:
            break
        if is_active and (walk.fault is None or segment.is_unwritten(position)):
            break
        following = segment.resume_after(position)
        reason = walk.fault or "a batch goes beyond the end of the file"
        pass_.report(segment.log.name, position, following - position, reason)
        position = following
    return pass_.finish()


class _Pass:
    """One walk over a segment, with the index entries at hand that come next."""

    def __init__(self, segment: LogSegment, deep: bool) -> None:
        self._segment = segment
        self._deep = deep
        self._damage: list[Damage] = []
        self._batches = self._records = 0
        self._next_offset = segment.base_offset
        self._largest = NO_TIMESTAMP
        self._offset_entry = self._time_entry = self._marker = 0
        self._check_order()

    def take_in(self, batch: Batch) -> None:
        """Check the next good batch."""
        self._batches += 1
        self._records += batch.record_count if batch.magic >= MAGIC_V2 else 1
        reason = self._fault(batch)
        if reason is not None:
            self.report(self._segment.log.name, batch.position, batch.size, reason)
        self._next_offset = max(self._next_offset, batch.next_offset)
        self._check_offset_entries(batch.position, batch)
        self._check_time_entries(batch)
        if batch.is_control:
            self._check_markers(batch)

    def finish(self) -> SegmentReport:
        """Report the entries that point beyond the last batch, and return everything."""
        segment = self._segment
        self._check_offset_entries(segment.size + (1 << 32), None)
        self._check_time_entries(None)
        self._check_markers(None)
        return SegmentReport(
            segment.log.name,
            segment.base_offset,
            self._next_offset,
            segment.size,
            self._batches,
            self._records,
            segment.offset_index.entries,
            segment.time_index.entries,
            sorted(self._damage, key=lambda damage: (damage.file, damage.offset)),
        )

    def report(self, file: str, offset: int, length: int, reason: str) -> None:
        """Note something that is wrong."""
        self._damage.append(Damage(file, offset, length, reason))

    def _fault(self, batch: Batch) -> str | None:
        if batch.base_offset < self._next_offset:
            return f"begins at offset {batch.base_offset}, where {self._next_offset} is next"
        if not self._segment.offset_index.can_append(batch.last_offset):
            return f"ends at offset {batch.last_offset}, too far from the segment's base"
        if batch.magic >= MAGIC_V2:
            span = batch.last_offset - batch.base_offset + 1
            if not 0 <= batch.record_count <= span:
                return f"says that it has {batch.record_count} records in {span} offsets"
        try:
            if self._deep:
                self._segment.log.records(batch)
            else:
                _ = batch.compression
        except FormatError as error:
            return str(error)
        return None

    def _check_order(self) -> None:
        index, times = self._segment.offset_index, self._segment.time_index
        for number, (before, after) in enumerate(pairwise(index.all()), 1):
            if after.offset <= before.offset or after.position <= before.position:
                self._report_offset_entry(number, f"{after} cannot follow {before}")
        for number, (before, after) in enumerate(pairwise(times.all()), 1):
            if after.timestamp <= before.timestamp or after.offset < before.offset:
                self._report_time_entry(number, f"{after} cannot follow {before}")

    def _check_offset_entries(self, position: int, batch: Batch | None) -> None:
        """Check the entries up to a position, where `batch` is."""
        index = self._segment.offset_index
        while self._offset_entry < index.entries:
            entry = index.entry(self._offset_entry)
            if entry.position > position:
                return
            if batch is None or entry.position != position or entry.offset != batch.last_offset:
                self._report_offset_entry(
                    self._offset_entry,
                    f"no batch ends at offset {entry.offset} at {entry.position}",
                )
            self._offset_entry += 1

    def _check_time_entries(self, batch: Batch | None) -> None:
        """Check the entries up to a batch's last offset, and take its timestamp in."""
        times = self._segment.time_index
        largest = self._largest if batch is None else max(self._largest, batch.max_timestamp)
        while self._time_entry < times.entries:
            entry = times.entry(self._time_entry)
            if batch is not None and entry.offset > batch.last_offset:
                break
            if batch is None or entry.offset != batch.last_offset or entry.timestamp != largest:
                self._report_time_entry(
                    self._time_entry,
                    f"{entry.timestamp} is not the largest timestamp up to offset {entry.offset},"
                    " or no batch ends there",
                )
            self._time_entry += 1
        self._largest = largest

    def _check_markers(self, batch: Batch | None) -> None:
        """Check the aborted transactions up to a control batch."""
        entries = self._segment.transaction_index.entries
        while self._marker < len(entries):
            entry = entries[self._marker]
            if batch is not None and entry.last_offset > batch.base_offset:
                return
            if batch is None or (entry.last_offset, entry.producer_id) != (
                batch.base_offset,
                batch.producer_id,
            ):
                self._report_entry(
                    Kind.TRANSACTION_INDEX,
                    self._marker,
                    transaction_index.ENTRY_SIZE,
                    f"no transaction of producer {entry.producer_id} ends at {entry.last_offset}",
                )
            self._marker += 1

    def _report_offset_entry(self, number: int, reason: str) -> None:
        self._report_entry(Kind.OFFSET_INDEX, number, offset_index.ENTRY_SIZE, reason)

    def _report_time_entry(self, number: int, reason: str) -> None:
        self._report_entry(Kind.TIME_INDEX, number, time_index.ENTRY_SIZE, reason)

    def _report_entry(self, kind: Kind, number: int, size: int, reason: str) -> None:
        name = self._segment.log.name.replace(Kind.LOG, kind, 1)
        self.report(name, number * size, size, reason)
