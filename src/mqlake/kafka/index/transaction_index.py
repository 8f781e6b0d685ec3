"""The aborted transactions of a segment (docs/formats/kafka/transaction_index.md).

Upstream: `TransactionIndex`.
"""

from __future__ import annotations

from typing import NamedTuple

from mqlake.errors import StoreError
from mqlake.formats.kafka.transaction_index import (
    ENTRY_SIZE,
    AbortedTransaction,
    decode,
    encode_entry,
)
from mqlake.kafka.errors import CorruptIndexError, InvalidOffsetError
from mqlake.kafka.files.lazy_file import read_whole
from mqlake.kafka.files.owned_file import OwnedFile
from mqlake.storage.protocol import OwnedDirectory


class AbortedIn(NamedTuple):
    """Aborted transactions of a range, and whether later segments cannot have more of them."""

    transactions: list[AbortedTransaction]
    is_complete: bool


class TransactionIndex:
    """The entries of a file, and the file itself if this process owns the segment.

    Attributes:
        entries: in the order of their markers.

    Raises:
        FormatError: an entry of a later version.
    """

    def __init__(self, data: bytes, base_offset: int) -> None:
        """Take a file's bytes."""
        self.entries = decode(data)
        self._base_offset = base_offset
        self._place: tuple[OwnedDirectory, str] | None = None
        self._file: OwnedFile | None = None

    @classmethod
    def own(cls, directory: OwnedDirectory, path: str, base_offset: int) -> TransactionIndex:
        """Take the file of a segment that this process owns; its first entry creates it."""
        index = cls(read_whole(directory, path) or b"", base_offset)
        index._place = directory, path
        return index

    def append(self, entry: AbortedTransaction) -> None:
        """Add an entry.

        Raises:
            InvalidOffsetError: its marker does not come after the last one's.
        """
        if self.entries and entry.last_offset <= self.entries[-1].last_offset:
            raise InvalidOffsetError(
                f"the marker at offset {entry.last_offset} cannot follow the one at"
                f" {self.entries[-1].last_offset} in the transaction index"
            )
        self._owned().append(encode_entry(entry))
        self.entries.append(entry)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries whose markers are at an offset or above."""
        kept = 0
        while kept < len(self.entries) and self.entries[kept].last_offset < offset:
            kept += 1
        if kept < len(self.entries):
            self._owned().truncate(kept * ENTRY_SIZE)
            del self.entries[kept:]

    def reset(self) -> None:
        """Throw all entries away."""
        if self._place is None or self._place[0].exists(self._place[1]):
            self._owned().truncate(0)
        self.entries.clear()

    def between(self, start: int, end: int) -> AbortedIn:
        """Return the transactions with records from offset `start` to before `end`."""
        found: list[AbortedTransaction] = []
        for entry in self.entries:
            if entry.last_offset >= start and entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return AbortedIn(found, is_complete=True)
        return AbortedIn(found, is_complete=False)

    def sanity_check(self) -> None:
        """Check what Kafka checks.

        Raises:
            CorruptIndexError: a marker below the segment's base offset.
        """
        for entry in self.entries:
            if entry.last_offset < self._base_offset:
                raise CorruptIndexError(
                    f"an aborted transaction ends at {entry.last_offset}, below the base"
                    f" {self._base_offset}"
                )

    def flush(self) -> None:
        """Return once the entries are on the disk; the name of a new file is left to its owner.

        Raises:
            SyncError: the disk failed.
        """
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Release the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _owned(self) -> OwnedFile:
        if self._place is None:
            raise StoreError("a transaction index that is opened for reading only")
        if self._file is None:
            self._file = OwnedFile(*self._place)
            # What a torn write left after the last whole entry.
            self._file.truncate(len(self.entries) * ENTRY_SIZE)
        return self._file
