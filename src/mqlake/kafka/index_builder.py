"""Which batches get index entries: the one rule of appending and of recovering."""

from __future__ import annotations

from mqlake.formats.kafka.batch import Batch
from mqlake.formats.kafka.time_index import TimestampOffset
from mqlake.kafka.offset_index import OffsetIndex
from mqlake.kafka.time_index import TimeIndex


class IndexBuilder:
    """Fills the indexes of a segment, batch by batch.

    A batch gets an entry if more than `interval_bytes` have come since the last one that did; the
    first batch never does. Kafka: `LogSegment.append`, `LogSegment.recover`.

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

    def finish(self) -> None:
        """Add the entry that a segment gets when nothing more comes."""
        self._time_index.maybe_append(self.largest, closing=True)
