"""The offset index of a segment (docs/formats/kafka/offset_index.md).

Upstream: `OffsetIndex`.
"""

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
    """The positions in the log of some of its offsets."""

    entry_size: ClassVar[int] = ENTRY_SIZE

    def entry(self, number: int) -> OffsetPosition:
        """Return an entry by its number, from 0."""
        return decode_entry(self._buffer, self.base_offset, number)

    @property
    def last_offset(self) -> int:
        """The offset of the last entry, or the base offset if the index is empty."""
        if not self.entries:
            return self.base_offset
        if self._last is None:
            self._last = self.entry(self.entries - 1)
        return self._last.offset

    def lookup(self, offset: int) -> OffsetPosition:
        """Return the last entry at or below an offset, or (base offset, 0) without one."""
        slot = self._slot(_OFFSET, offset)
        return self.entry(slot) if slot >= 0 else OffsetPosition(self.base_offset, 0)

    def upper_bound(self, start: OffsetPosition, length: int) -> OffsetPosition | None:
        """Return the first entry at least `length` bytes after a position, or None without one.

        Upstream: `fetchUpperBoundOffset`.
        """
        # Positions are whole numbers, so this is the first entry at or above.
        slot = self._slot(_POSITION, start.position + length - 1) + 1
        return self.entry(slot) if slot < self.entries else None

    def positions_after(self, position: int, limit: int) -> list[int]:
        """Return the positions of up to `limit` entries after a position, ascending."""
        first = self._slot(_POSITION, position) + 1
        return [self.entry(n).position for n in range(first, min(first + limit, self.entries))]

    def append(self, offset: int, position: int) -> None:
        """Add an entry.

        Raises:
            FullIndexError: the index is full.
            InvalidOffsetError: the offset is not above the last one.
            OffsetOverflowError: the offset is too far from the base.
        """
        if self.is_full:
            raise FullIndexError(f"{self.name}: the index is full with {self.entries} entries")
        if self.entries and offset <= self.last_offset:
            raise InvalidOffsetError(
                f"{self.name}: offset {offset} cannot follow {self.last_offset} in the index"
            )
        self._check_offset(offset)
        entry = OffsetPosition(offset, position)
        self._put(encode_entry(self.base_offset, entry), entry)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries from an offset on."""
        self._truncate_to(offset, _OFFSET)

    def sanity_check(self) -> None:
        """Check the index as Kafka does.

        Raises:
            CorruptIndexError: the last offset is below the base, or the last entry is incomplete.
        """
        if self.entries and self.last_offset < self.base_offset:
            raise CorruptIndexError(
                f"{self.name}: last offset {self.last_offset} below the base {self.base_offset}"
            )
        self._check_size()
