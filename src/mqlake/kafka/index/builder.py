"""Which batches get index entries: the one rule of appending and of recovering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.formats.kafka.batch import Batch
from mqlake.formats.kafka.time_index import TimestampOffset
from mqlake.kafka.index.offset_index import OffsetIndex
from mqlake.kafka.index.time_index import TimeIndex

if TYPE_CHECKING:
    from mqlake.kafka.batches.columns import BatchColumns


class IndexBuilder:
    """Fills the indexes of a segment, batch by batch.

    A batch gets an entry if more than `interval_bytes` have come since the last one that did; the
    first batch never does. Upstream: `LogSegment.append`, `LogSegment.recover`.

    Attributes:
        largest: the largest timestamp so far, and the last offset of the batch that has it.
    """

    def __init__(
        self, offset_index: OffsetIndex, time_index: TimeIndex, interval_bytes: int
    ) -> None:
        self._offset_index = offset_index
        self._time_index = time_index
        self._interval = interval_bytes
        self._since_entry = 0
        self.largest = time_index.last_entry

    def add(self, batch: Batch) -> None:
        """Take in the next batch.

        Raises:
            FullIndexError, InvalidOffsetError, OffsetOverflowError: the batch cannot be indexed.
        """
        if batch.max_timestamp > self.largest.timestamp:
            self.largest = TimestampOffset(batch.max_timestamp, batch.last_offset)
        if self._since_entry > self._interval:
            self._offset_index.append(batch.last_offset, batch.position)
            self._time_index.maybe_append(self.largest)
            self._since_entry = 0
        self._since_entry += batch.size

    def add_rows(self, rows: BatchColumns) -> None:
        """Take in the next batches, at least one, as rows: those chosen at once if all is well.

        Raises:
            FullIndexError, InvalidOffsetError, OffsetOverflowError: a batch cannot be indexed.
        """
        from mqlake.kafka.batches.scan import each
        from mqlake.kafka.index.rows import index_rows

        indexed = index_rows(rows, self._interval, self._since_entry, self.largest)
        if not indexed.append(self._offset_index, self._time_index):
            for batch in each(rows):
                self.add(batch)
            return
        self._since_entry, self.largest = indexed.since_entry, indexed.largest

    def finish(self) -> None:
        """Add the entry that a segment gets when nothing more comes."""
        self._time_index.maybe_append(self.largest, closing=True)
