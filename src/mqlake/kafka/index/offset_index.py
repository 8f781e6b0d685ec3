"""The offset index of a segment (docs/formats/kafka/offset_index.md). Kafka: `OffsetIndex`."""

from __future__ import annotations

from typing import ClassVar

from mqlake.formats.kafka.offset_index import (
    ENTRY_SIZE,
    OffsetPosition,
    decode_entry,
    encode_entry,
)
from mqlake.kafka.errors import CorruptIndexError, FullIndexError, InvalidOffsetError
from mqlake.kafka.index.base import Index

_OFFSET, _POSITION = 0, 1


class OffsetIndex(Index[OffsetPosition]):
    """Where in the log some of the offsets are."""

    entry_size: ClassVar[int] = ENTRY_SIZE

    def entry(self, number: int) -> OffsetPosition:
        """Return an entry, 0 the first."""
        return decode_entry(self._buffer, self.base_offset, number)

    @property
    def last_offset(self) -> int:
        """The offset of the last entry, the base offset if there is none."""
        if not self.entries:
            return self.base_offset
        if self._last is None:
            self._last = self.entry(self.entries - 1)
        return self._last.offset

    def lookup(self, offset: int) -> OffsetPosition:
        """Return the last entry not above an offset, (base offset, 0) if there is none."""
        slot = self._slot(_OFFSET, offset)
        return self.entry(slot) if slot >= 0 else OffsetPosition(self.base_offset, 0)

    def upper_bound(self, start: OffsetPosition, length: int) -> OffsetPosition | None:
        """Return an entry beyond `length` bytes from a position on, None if there is none.

        Kafka: `fetchUpperBoundOffset`.
        """
        # The first entry at or above: positions are whole numbers.
        slot = self._slot(_POSITION, start.position + length - 1) + 1
        return self.entry(slot) if slot < self.entries else None

    def positions_after(self, position: int, limit: int) -> list[int]:
        """Return the positions of up to `limit` entries, from the first one above a position."""
        first = self._slot(_POSITION, position) + 1
        return [self.entry(n).position for n in range(first, min(first + limit, self.entries))]

    def append(self, offset: int, position: int) -> None:
        """Add an entry.

        Raises:
            FullIndexError: there is no room.
            InvalidOffsetError: the offset is not above the last one.
            OffsetOverflowError: the offset is too far from the base.
        """
        if self.is_full:
            raise FullIndexError(f"{self.name}: full with {self.entries} entries")
        if self.entries and offset <= self.last_offset:
            raise InvalidOffsetError(
                f"{self.name}: offset {offset} cannot follow {self.last_offset} in the index"
            )
        self._check_offset(offset)
        entry = OffsetPosition(offset, position)
        self._put(encode_entry(self.base_offset, entry), entry)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at an offset and above."""
        self._truncate_to(offset, _OFFSET)

    def sanity_check(self) -> None:
        """Check what Kafka checks.

        Raises:
            CorruptIndexError: the last offset is below the base, or no whole number of entries.
        """
        if self.entries and self.last_offset < self.base_offset:
            raise CorruptIndexError(
                f"{self.name}: last offset {self.last_offset} below the base {self.base_offset}"
            )
        self._check_size()
