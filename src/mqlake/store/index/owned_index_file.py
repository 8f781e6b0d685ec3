"""One index file that this process writes (docs/formats/index_file.md).

Upstream: `IndexFile`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mqlake.dispatch.batch import Ints, Longs
from mqlake.dispatch.derived.index_entries import IndexInserter
from mqlake.formats import index_file
from mqlake.formats.index_file import ENTRY_SIZE, HEADER_SIZE, IndexHeader
from mqlake.storage.protocol import WritableFile
from mqlake.store.index.index_files import IndexFile
from mqlake.store.index.index_sizes import Sizes
from mqlake.store.log.file_end import end_of_data

_ENTRY = np.dtype([("hash", ">i4"), ("offset", ">i8"), ("seconds", ">i4"), ("previous", ">i4")])
_STEP = 1 << 20


class IndexTail(NamedTuple):
    """The last index file, as recovery found it.

    Attributes:
        header: it counts the valid entries.
        heads: i4[slots], each slot's last entry among those.
    """

    name: str
    sizes: Sizes
    header: IndexHeader
    heads: Ints


def find_heads(view: memoryview, sizes: Sizes, header: IndexHeader) -> Ints | None:
    """Return each slot's last entry at the time of this header, None if entries are missing.

    The entries are durable, and never change. The slots may be newer, and lead to entries that are
    lost: all are computed again from the entries' hashes.
    """
    if not 1 <= header.index_count <= sizes.max_entries:
        return None
    start = index_file.entry_at(sizes.slots, 1)
    end = index_file.entry_at(sizes.slots, header.index_count)
    entries = np.frombuffer(view, np.uint8)[start:end].view(_ENTRY)
    heads = np.zeros(sizes.slots, np.int32)
    if len(entries):
        bounds = int(entries["offset"][0]), int(entries["offset"][-1])
        if bounds != (header.begin_physical_offset, header.end_physical_offset):
            return None
    for first in range(0, len(entries), _STEP):
        hashes = entries["hash"][first : first + _STEP].astype(np.int32)
        if hashes.min() < 0:
            return None
        # If a slot occurs twice, the later number remains.
        heads[hashes % sizes.slots] = np.arange(first + 1, first + 1 + len(hashes))
    return heads if int(np.count_nonzero(heads)) == header.slot_count else None


class OwnedIndexFile:
    """An index file, mapped. Its header in the file is valid after each change."""

    def __init__(self, name: str, file: WritableFile, sizes: Sizes, header: IndexHeader) -> None:
        self.name, self.file, self.sizes = name, file, sizes
        self._view = file.mapping()
        self._bytes = np.frombuffer(self._view, np.uint8)
        self._entries_at = index_file.entry_at(sizes.slots, 0)
        self._inserter = IndexInserter(self._bytes, sizes.slots, sizes.max_entries, header)

    @property
    def header(self) -> IndexHeader:
        """The content of the file."""
        return self._inserter.header

    @property
    def room(self) -> int:
        """The number of entries that still fit."""
        return self._inserter.room

    def as_read(self) -> IndexFile:
        """Return the file as queries use it; later entries are visible through it, too."""
        header = self.header
        view = self.file.view()
        return IndexFile(self.name, header, self.sizes, view, header.end_physical_offset)

    def begin(self, header: IndexHeader) -> None:
        """Become an empty file after one that ends where the header begins."""
        sizes = self.sizes
        self._inserter = IndexInserter(self._bytes, sizes.slots, sizes.max_entries, header)
        self.write_header()

    def reserve(self, count: int) -> None:
        """Reserve room on the disk for the slots and so many more entries.

        Raises:
            DiskError: the disk has no room.
        """
        self.file.reserve(0, self._entries_at + ENTRY_SIZE)
        start = self._inserter.used_bytes
        self.file.reserve(start, min(count, self.room) * ENTRY_SIZE)

    def insert(self, hashes: Ints, offsets: Longs, timestamps: Longs) -> int:
        """Append entries, for which the disk has room, as many as fit; return how many."""
        start = self._inserter.used_bytes
        count = self._inserter.insert(hashes, offsets, timestamps)
        if count:
            self.file.written(start, count * ENTRY_SIZE)
            self.write_header()
        return count

    def write_header(self) -> None:
        """Write the header, and changed slots, to the file."""
        self._view[:HEADER_SIZE] = index_file.encode_header(self.header)
        self.file.written(0, self._entries_at)

    # Recovery

    def restore(self, heads: Ints) -> None:
        """Write the header, and the slots of its entries, if the file has others.

        Args:
            heads: i4[slots], each slot's last entry, as `find_heads` returns them.

        Raises:
            DiskError: the disk has no room for them.
        """
        slots = self._bytes[HEADER_SIZE : self._entries_at].view(">i4")
        wrong = np.flatnonzero(slots != heads)
        if len(wrong) or bytes(self._view[:HEADER_SIZE]) != index_file.encode_header(self.header):
            self.reserve(0)
            slots[wrong] = heads[wrong]
            self.write_header()

    def clear_behind(self) -> int:
        """Zero the bytes that are written after the last entry; return how many they were."""
        start = self._inserter.used_bytes
        end = end_of_data(self.file, start, self.file.size)
        for at in range(start, end, _STEP):
            self.file.write(at, bytes(min(_STEP, end - at)))
        return end - start

    def close(self) -> None:
        """Close the file; views of it stay valid."""
        self._bytes = np.zeros(0, np.uint8)
        self._view = memoryview(b"")
        self.file.close()
