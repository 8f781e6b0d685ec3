"""Check a segment: every batch, and every index entry against the batches."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from mqlake.errors import FormatError
from mqlake.formats.damage import Damage
from mqlake.formats.kafka import offset_index, time_index, transaction_index
from mqlake.formats.kafka.batch import MAGIC_V2, MAX_INT, NO_TIMESTAMP, Batch
from mqlake.formats.kafka.compression import CODEC_MASK
from mqlake.formats.kafka.file_name import Kind
from mqlake.formats.kafka.offset_index import OffsetPosition
from mqlake.formats.kafka.time_index import TimestampOffset
from mqlake.kafka.batches.kernel import is_compiled
from mqlake.kafka.batches.walk import BatchWalk
from mqlake.kafka.log.segment import LogSegment

if TYPE_CHECKING:
    from mqlake.kafka.batches.columns import BatchColumns
    from mqlake.kafka.batches.scan import BatchScan
    from mqlake.kafka.verify.rows import EntryColumns


class SegmentReport(msgspec.Struct, frozen=True, rename="camel"):
    """The content of a segment, and what is wrong with it.

    Attributes:
        file: the log's path, relative to the opened directory.
        base_offset, next_offset: its first possible offset, and the one after its last batch.
        size: bytes of log.
        batches, records: whole and valid ones; records as counted in the batches, 1 for each batch
            of version 0 and 1.
        index_entries, time_index_entries: numbers of entries.
        damage: damaged stretches of its files, ascending by file and position.
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


def verify_segment(
    segment: LogSegment, *, deep: bool = False, is_active: bool = False
) -> SegmentReport:
    """Check a segment; the end of an active one may be torn or unwritten."""
    pass_ = _Pass(segment, deep)
    position = 0
    while position < segment.size:
        walk = pass_.go_over(position)
        position = walk.position
        if position >= segment.size:
            break
        if is_active and (walk.fault is None or segment.is_unwritten(position)):
            break
        following = segment.resume_after(position)
        reason = walk.fault or "a batch extends beyond the end of the file"
        pass_.report(segment.log.name, position, following - position, reason)
        position = following
    return pass_.finish()


class _Pass:
    """One walk over a segment, with the next index entries."""

    def __init__(self, segment: LogSegment, deep: bool) -> None:
        self._segment = segment
        self._deep = deep
        self._damage: list[Damage] = []
        self._batches = self._records = 0
        self._next_offset = segment.base_offset
        self._largest = NO_TIMESTAMP
        self._aborted = segment.transaction_index.entries
        self._checked_offsets = self._checked_times = self._checked_markers = 0
        self._entries: tuple[EntryColumns, EntryColumns] | None = None

    @cached_property
    def _offsets(self) -> list[OffsetPosition]:
        return self._segment.offset_index.all()

    @cached_property
    def _times(self) -> list[TimestampOffset]:
        return self._segment.time_index.all()

    def go_over(self, position: int) -> BatchWalk | BatchScan:
        """Check the valid batches from a position on; return the walk, which has ended."""
        log = self._segment.log
        if not is_compiled(log.file, position):
            walk = log.batches(position, check=True)
            for batch in walk:
                self.take_in(batch)
            return walk
        from mqlake.kafka.batches.scan import BatchScan

        scan = BatchScan(log.file, position)
        for batches in scan:
            self.take_in_rows(batches.rows)
        return scan

    def take_in_rows(self, rows: BatchColumns) -> None:
        """Check the next valid batches as rows: all in a single call, while nothing is wrong."""
        from mqlake.kafka.batches.scan import each
        from mqlake.kafka.verify.rows import VerifiedRows

        seen = VerifiedRows(rows, self._largest)
        offsets = times = None
        if not self._deep and seen.are_sound(self._next_offset, self._segment.base_offset):
            offset_entries, time_entries = self._entry_columns()
            offsets = seen.good_offset_entries(offset_entries, self._checked_offsets)
            times = seen.good_time_entries(time_entries, self._checked_times)
        if offsets is None or times is None:
            for batch in each(rows):
                self.take_in(batch)
            return
        self._batches += len(rows)
        self._records += seen.records
        self._next_offset = seen.next_offset
        self._largest = seen.largest
        self._checked_offsets, self._checked_times = offsets, times
        for batch in each(seen.control):
            self._check_markers(batch)

    def take_in(self, batch: Batch) -> None:
        """Check the next valid batch."""
        self._batches += 1
        self._records += batch.record_count if batch.magic >= MAGIC_V2 else 1
        reason = self._fault(batch)
        if reason is not None:
            self.report(self._segment.log.name, batch.position, batch.size, reason)
        if batch.last_offset >= self._next_offset:
            self._next_offset = batch.last_offset + 1
        if batch.max_timestamp > self._largest:
            self._largest = batch.max_timestamp
        number = self._checked_offsets
        if number < len(self._offsets) and self._offsets[number].position <= batch.position:
            self._check_offset_entries(batch)
        number = self._checked_times
        if number < len(self._times) and self._times[number].offset <= batch.last_offset:
            self._check_time_entries(batch)
        if batch.is_control:
            self._check_markers(batch)

    def finish(self) -> SegmentReport:
        """Report the entries that point beyond the last batch; return the whole report."""
        segment = self._segment
        found, self._damage = self._damage, []
        if not (self._entries and all(entries.are_ordered for entries in self._entries)):
            self._check_order()
        self._damage += found
        self._check_offset_entries(None)
        self._check_time_entries(None)
        self._check_markers(None)
        return SegmentReport(
            file=segment.log.name,
            base_offset=segment.base_offset,
            next_offset=self._next_offset,
            size=segment.size,
            batches=self._batches,
            records=self._records,
            index_entries=segment.offset_index.entries,
            time_index_entries=segment.time_index.entries,
            damage=sorted(self._damage, key=lambda damage: (damage.file, damage.offset)),
        )

    def report(self, file: str, offset: int, length: int, reason: str) -> None:
        """Add damage to the report."""
        self._damage.append(Damage(file, offset, length, reason))

    def _fault(self, batch: Batch) -> str | None:
        if batch.base_offset < self._next_offset:
            return (
                f"begins at offset {batch.base_offset}, but the next offset is {self._next_offset}"
            )
        if not batch.base_offset <= batch.last_offset <= self._segment.base_offset + MAX_INT:
            return f"ends at offset {batch.last_offset}"
        if batch.magic >= MAGIC_V2:
            span = batch.last_offset - batch.base_offset + 1
            if not 0 <= batch.record_count <= span:
                return f"contains {batch.record_count} records in {span} offsets"
        try:
            if self._deep:
                self._segment.log.records(batch)
            elif batch.attributes & CODEC_MASK:
                _ = batch.compression
        except FormatError as error:
            return str(error)
        return None

    def _entry_columns(self) -> tuple[EntryColumns, EntryColumns]:
        if self._entries is None:
            from mqlake.kafka.verify.rows import offset_entries, time_entries

            segment = self._segment
            self._entries = offset_entries(segment.offset_index), time_entries(segment.time_index)
        return self._entries

    def _check_order(self) -> None:
        for number, (before, after) in enumerate(pairwise(self._offsets), 1):
            if after.offset <= before.offset or after.position <= before.position:
                self._report_offset_entry(number, f"{after} cannot follow {before}")
        for number, (before, after) in enumerate(pairwise(self._times), 1):
            if after.timestamp <= before.timestamp or after.offset < before.offset:
                self._report_time_entry(number, f"{after} cannot follow {before}")

    def _check_offset_entries(self, batch: Batch | None) -> None:
        """Check the entries up to the position of a batch, or all remaining ones."""
        for number in range(self._checked_offsets, self._segment.offset_index.entries):
            entry = self._offsets[number]
            if batch is not None and entry.position > batch.position:
                return
            if batch is None or entry != (batch.last_offset, batch.position):
                reason = f"there is no batch that ends at offset {entry.offset} at {entry.position}"
                self._report_offset_entry(number, reason)
            self._checked_offsets += 1

    def _check_time_entries(self, batch: Batch | None) -> None:
        """Check the entries up to the last offset of a batch, or all remaining ones."""
        for number in range(self._checked_times, self._segment.time_index.entries):
            entry = self._times[number]
            if batch is not None and entry.offset > batch.last_offset:
                return
            if batch is None or entry != (self._largest, batch.last_offset):
                self._report_time_entry(
                    number,
                    f"{entry.timestamp} is not the largest timestamp up to offset {entry.offset},"
                    " or no batch ends there",
                )
            self._checked_times += 1

    def _check_markers(self, batch: Batch | None) -> None:
        """Check the aborted transactions up to a control batch, or all remaining ones."""
        for number in range(self._checked_markers, len(self._aborted)):
            entry = self._aborted[number]
            if batch is not None and entry.last_offset > batch.base_offset:
                return
            marker = None if batch is None else (batch.base_offset, batch.producer_id)
            if marker != (entry.last_offset, entry.producer_id):
                self._report_entry(
                    Kind.TRANSACTION_INDEX,
                    number,
                    transaction_index.ENTRY_SIZE,
                    f"there is no transaction of producer {entry.producer_id} that ends at "
                    f"{entry.last_offset}",
                )
            self._checked_markers += 1

    def _report_offset_entry(self, number: int, reason: str) -> None:
        self._report_entry(Kind.OFFSET_INDEX, number, offset_index.ENTRY_SIZE, reason)

    def _report_time_entry(self, number: int, reason: str) -> None:
        self._report_entry(Kind.TIME_INDEX, number, time_index.ENTRY_SIZE, reason)

    def _report_entry(self, kind: Kind, number: int, size: int, reason: str) -> None:
        name = self._segment.log.name.replace(Kind.LOG, kind, 1)
        self.report(name, number * size, size, reason)
