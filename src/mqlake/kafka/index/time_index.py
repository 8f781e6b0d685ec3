"""The time index of a segment (docs/formats/kafka/time_index.md).

Upstream: `TimeIndex`.
"""

from __future__ import annotations

from typing import ClassVar

from mqlake.formats.kafka.batch import NO_TIMESTAMP
from mqlake.formats.kafka.time_index import (
    ENTRY_SIZE,
    TimestampOffset,
    decode_entry,
    encode_entry,
)
from mqlake.kafka.errors import CorruptIndexError, FullIndexError, InvalidOffsetError
from mqlake.kafka.index.base import Index

_TIMESTAMP, _OFFSET = 0, 1


class TimeIndex(Index[TimestampOffset]):
    """For some offsets, the largest timestamp up to the offset."""

    entry_size: ClassVar[int] = ENTRY_SIZE
    _reserved: ClassVar[int] = 1

    def entry(self, number: int) -> TimestampOffset:
        """Return an entry by its number, from 0."""
        return decode_entry(self._buffer, self.base_offset, number)

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry, or (-1, base offset) if the index is empty."""
        if not self.entries:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        if self._last is None:
            self._last = self.entry(self.entries - 1)
        return self._last

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the last entry at or before a time, or (-1, base offset) without one."""
        slot = self._slot(_TIMESTAMP, timestamp)
        return self.entry(slot) if slot >= 0 else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def maybe_append(self, entry: TimestampOffset, *, closing: bool = False) -> None:
        """Add an entry if its time is after the last one's; `closing` uses the reserved entry.

        Raises:
            FullIndexError: the index is full.
            InvalidOffsetError: the offset or the time is below the last one.
            OffsetOverflowError: the offset is too far from the base.
        """
        if not closing and self.is_full:
            raise FullIndexError(f"{self.name}: the index is full with {self.entries} entries")
        last = self.last_entry
        if self.entries and (entry.offset < last.offset or entry.timestamp < last.timestamp):
            raise InvalidOffsetError(
                f"{self.name}: offset {entry.offset} at {entry.timestamp} cannot follow offset"
                f" {last.offset} at {last.timestamp} in the index"
            )
        if entry.timestamp > last.timestamp:
            self._check_offset(entry.offset)
            self._put(encode_entry(self.base_offset, entry), entry)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries from an offset on."""
        self._truncate_to(offset, _OFFSET)

    def sanity_check(self) -> None:
        """Check the index as Kafka does.

        Raises:
            CorruptIndexError: the last entry is below the first or below the base, or it is
                incomplete.
        """
        last = self.last_entry
        if self.entries and last.timestamp < self.entry(0).timestamp:
            raise CorruptIndexError(
                f"{self.name}: last timestamp {last.timestamp} before the first,"
                f" {self.entry(0).timestamp}"
            )
        if self.entries and last.offset < self.base_offset:
            raise CorruptIndexError(
                f"{self.name}: last offset {last.offset} below the base {self.base_offset}"
            )
        self._check_size()
