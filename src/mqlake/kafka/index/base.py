"""What both indexes of a segment share: sorted entries of one size. Upstream: `AbstractIndex`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from typing import ClassVar, Generic, Self, TypeVar

from mqlake.errors import StoreError
from mqlake.kafka.errors import CorruptIndexError, FullIndexError, OffsetOverflowError
from mqlake.kafka.files.mapped_file import MappedFile
from mqlake.storage.durable import base_name
from mqlake.storage.protocol import OwnedDirectory

Entry = TypeVar("Entry", bound=tuple[int, int])

_MAX_INT = 0x7FFFFFFF


class Index(ABC, Generic[Entry]):
    """An index file, read as a whole or, if this process owns the segment, mapped and written.

    Entries go up in both of their numbers. A file that Kafka was writing has zeros after the last
    one. Not safe for use by several threads while it is written.

    Attributes:
        name: the file's name, for messages.
        base_offset: of the segment.
        entries: how many there are.
    """

    entry_size: ClassVar[int]
    # How many places are kept free for the entry that is added when a segment is closed.
    _reserved: ClassVar[int] = 0

    def __init__(self, data: bytes | MappedFile, base_offset: int, name: str) -> None:
        self.name = name
        self.base_offset = base_offset
        self._file = data if isinstance(data, MappedFile) else None
        self._data = b"" if isinstance(data, MappedFile) else data
        self._length = data.size if isinstance(data, MappedFile) else len(data)
        self._max_bytes = self._length
        self._last: Entry | None = None
        self.entries = 0
        if self._file is None:
            self.entries = self._written_entries()
        elif not self._file.is_new:
            self.entries = self._length // self.entry_size

    @classmethod
    def own(cls, directory: OwnedDirectory, path: str, base_offset: int, max_bytes: int) -> Self:
        """Open the file of a segment that this process owns, of `max_bytes` if it is new."""
        rounded = max_bytes - max_bytes % cls.entry_size
        index = cls(MappedFile(directory, path, rounded), base_offset, base_name(path))
        index._max_bytes = rounded
        return index

    @property
    def max_entries(self) -> int:
        """As many as the file has room for."""
        return self._length // self.entry_size

    @property
    def is_full(self) -> bool:
        """Return whether there is no room for one more."""
        return self.entries >= self.max_entries - self._reserved

    @abstractmethod
    def entry(self, number: int) -> Entry:
        """Return an entry, 0 the first."""

    @abstractmethod
    def sanity_check(self) -> None:
        """Check what Kafka checks.

        Raises:
            CorruptIndexError: the file contradicts itself.
        """

    def all(self) -> list[Entry]:
        """Return all entries."""
        return [self.entry(number) for number in range(self.entries)]

    def raw(self) -> bytes:
        """Return the bytes of all entries."""
        return bytes(self._buffer[: self.entries * self.entry_size])

    def can_append(self, offset: int) -> bool:
        """Return whether an offset is near enough to the base for an entry."""
        return 0 <= offset - self.base_offset <= _MAX_INT

    def reset(self) -> None:
        """Throw all entries away, and make room for new ones."""
        self.entries, self._last = 0, None
        self.grow()

    def grow(self) -> None:
        """Give the file its largest size, as an active segment's has."""
        self._resize(self._max_bytes)

    def trim(self) -> None:
        """Cut the file to its entries."""
        self._resize(self.entries * self.entry_size)

    def flush(self) -> None:
        """Return once the entries are on the disk."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Cut the file to its entries and release it; nothing for one that is only read."""
        if self._file is not None:
            self.trim()
            self._file.close()

    def abandon(self) -> None:
        """Release the file as it is."""
        if self._file is not None:
            self._file.close()

    @property
    def _buffer(self) -> bytes | memoryview:
        return self._data if self._file is None else self._file.buffer

    def _slot(self, field: int, target: int) -> int:
        """Return the number of the last entry whose field is not above the target, else -1."""
        return bisect_right(range(self.entries), target, key=lambda n: self.entry(n)[field]) - 1

    def _put(self, data: bytes, entry: Entry) -> None:
        if self._file is None:
            raise StoreError(f"{self.name}: opened for reading only")
        if self.entries >= self.max_entries:
            raise FullIndexError(f"{self.name}: the index is full with {self.entries} entries")
        at = self.entries * self.entry_size
        self._file.write(at, data)
        self.entries += 1
        self._last = entry

    def extend(self, data: bytes, last: Entry) -> None:
        """Add entries as they are in the file, which fit and go up; `last` is the last of them."""
        count = len(data) // self.entry_size
        self._put(data, last)
        self.entries += count - 1

    def has_room(self, count: int) -> bool:
        """Return whether so many more can be added before the index is full."""
        return self.entries + count <= self.max_entries - self._reserved

    def _check_offset(self, offset: int) -> None:
        if not self.can_append(offset):
            raise OffsetOverflowError(
                f"{self.name}: offset {offset} is not within 2^31 of the base {self.base_offset}"
            )

    def _check_size(self) -> None:
        if self._length % self.entry_size:
            raise CorruptIndexError(
                f"{self.name}: the file has {self._length} bytes, which is not a multiple of "
                f"{self.entry_size}"
            )

    def _truncate_to(self, offset: int, field: int) -> None:
        slot = self._slot(field, offset)
        self.entries = slot if slot >= 0 and self.entry(slot)[field] == offset else slot + 1
        self._last = None

    def _resize(self, size: int) -> None:
        if self._file is None:
            raise StoreError(f"{self.name}: opened for reading only")
        try:
            self._file.resize(size)
        finally:
            self._length = self._file.size

    def _written_entries(self) -> int:
        """Count the entries before the zeros that a file has while it is written.

        A whole file of one zero entry is an entry: the time 0 at the base offset.
        """
        count = self._length // self.entry_size
        if count < 2 or any(self._data[(count - 1) * self.entry_size : count * self.entry_size]):
            return count
        used = len(self._data.rstrip(b"\0"))
        return (used + self.entry_size - 1) // self.entry_size
