"""A `.log` file: its batches, and searches among them. Upstream: `FileRecords`."""

from __future__ import annotations

from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats.kafka import message_set, versions
from mqlake.formats.kafka.batch import NO_LEADER_EPOCH, NO_TIMESTAMP, Batch, Record
from mqlake.formats.kafka.compression import MAX_DECOMPRESSED
from mqlake.formats.kafka.time_index import TimestampOffset
from mqlake.kafka.batches.walk import SCAN_WINDOW, SEARCH_WINDOW, BatchWalk
from mqlake.storage.protocol import ReadableFile


class BatchPlace(NamedTuple):
    """A batch's first offset, its position and its size in bytes."""

    base_offset: int
    position: int
    size: int


class FoundRecord(NamedTuple):
    """The record that a search by time found; milliseconds, and -1 for no leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int


class LogFile:
    """The batches of a segment.

    Attributes:
        name: for messages.
        limit: what a batch may grow to when it is decompressed, in bytes.
    """

    def __init__(self, file: ReadableFile, name: str, limit: int = MAX_DECOMPRESSED) -> None:
        self.file = file
        self.name = name
        self.limit = limit

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self.file.size

    def batches(self, start: int = 0, end: int | None = None, *, check: bool = False) -> BatchWalk:
        """Return a walk over the batches from a position, which must be that of a batch."""
        window = SCAN_WINDOW if check else SEARCH_WINDOW
        return BatchWalk(self.file, start, end, check=check, window=window)

    def batch_at(self, position: int) -> Batch | None:
        """Return the batch at a position, None if none can be."""
        return next(self.batches(position), None)

    def read(self, batch: Batch) -> bytes:
        """Return all bytes of a batch."""
        return self.file.read(batch.position, batch.size)

    def records(self, batch: Batch) -> list[Record]:
        """Return the records of a batch.

        Raises:
            FormatError: damaged, or larger than `limit` when decompressed.
        """
        try:
            return versions.decode_records(batch, self.read(batch), self.limit)
        except FormatError as error:
            raise FormatError(f"{self.name}, byte {batch.position}: {error}") from None

    def first_offset(self, batch: Batch) -> int:
        """Return the offset of a batch's first record, by a look inside if it takes one.

        Raises:
            FormatError: as `records`.
        """
        if versions.knows_first_offset(batch):
            return batch.base_offset
        return message_set.first_offset(batch, self.read(batch), self.limit)

    def search_offset(self, target: int, start: int) -> BatchPlace | None:
        """Return the first batch from a position on that ends at an offset or after it."""
        for batch in self.batches(start):
            if batch.last_offset >= target:
                return BatchPlace(self.first_offset(batch), batch.position, batch.size)
        return None

    def search_timestamp(self, target: int, start: int, first_offset: int) -> FoundRecord | None:
        """Return the first record at a time or later, from a position and an offset on.

        Control records count, as in Kafka.

        Raises:
            FormatError: as `records`.
        """
        for batch in self.batches(start):
            if batch.max_timestamp < target or batch.last_offset < first_offset:
                continue
            for record in self.records(batch):
                if record.timestamp >= target and record.offset >= first_offset:
                    return FoundRecord(record.timestamp, record.offset, batch.leader_epoch)
        return None

    def largest_timestamp_after(self, start: int) -> TimestampOffset:
        """Return the largest timestamp from a position on, and the last offset of its batch."""
        largest = TimestampOffset(NO_TIMESTAMP, NO_LEADER_EPOCH)
        for batch in self.batches(start):
            if batch.max_timestamp > largest.timestamp:
                largest = TimestampOffset(batch.max_timestamp, batch.last_offset)
        return largest
