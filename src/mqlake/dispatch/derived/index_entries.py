"""Build index files, and look keys up in them (docs/formats/index_file.md)."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.batch import Bytes, Ints, Longs
from mqlake.dispatch.kernel import Kernel, load
from mqlake.errors import FormatError
from mqlake.formats import index_file
from mqlake.formats.index_file import DEFAULT_MAX_ENTRIES, DEFAULT_SLOTS, IndexHeader

_MAX_INT, _MIN_LONG, _MAX_LONG = (1 << 31) - 1, -1 << 63, (1 << 63) - 1


class IndexInserter:
    """Append entries to an index file in memory, which may be the mapping of a real one.

    Args:
        buffer: the file's bytes, writable.
        slots: hash slots of the file (`maxHashSlotNum`).
        max_entries: places for entries (`maxIndexNum`); place 0 stays empty, as in RocketMQ.
        header: what is in the file; the caller writes it to the file.
    """

    def __init__(
        self,
        buffer: Bytes,
        slots: int,
        max_entries: int,
        header: IndexHeader,
        kernel: Kernel | None = None,
    ) -> None:
        self.slots, self.max_entries, self.header = slots, max_entries, header
        self._buffer = buffer
        self._kernel = kernel or load()

    @property
    def room(self) -> int:
        """How many entries still fit."""
        return self.max_entries - self.header.index_count

    @property
    def used_bytes(self) -> int:
        """Bytes up to the end of the last entry; all after them is zero."""
        return index_file.entry_at(self.slots, self.header.index_count)

    def insert(self, hashes: Ints, offsets: Longs, timestamps: Longs) -> int:
        """Append entries, as many as fit; return how many did.

        Args:
            hashes: i4[n], as of `java_string.index_key_hash`, not negative.
            offsets: i8[n], physical offsets of the records.
            timestamps: i8[n], store timestamps of the records, in milliseconds.
        """
        count = min(len(hashes), self.room)
        if count <= 0:
            return 0
        old = self.header
        number, begin = old.index_count, old.begin_timestamp
        used = 0
        if number == 1:
            # The first entry's seconds count from what is overwritten by its own time.
            used = self._insert(number, begin, hashes[:1], offsets[:1], timestamps[:1])
            number, begin = 2, int(timestamps[0])
        done = number - old.index_count
        used += self._insert(
            number, begin, hashes[done:count], offsets[done:count], timestamps[done:count]
        )
        first_offset = int(offsets[0]) if done else old.begin_physical_offset
        self.header = IndexHeader(
            begin,
            int(timestamps[count - 1]),
            first_offset,
            int(offsets[count - 1]),
            old.slot_count + used,
            old.index_count + count,
        )
        return count

    def _insert(
        self, number: int, begin: int, hashes: Ints, offsets: Longs, timestamps: Longs
    ) -> int:
        return self._kernel.insert_entries(
            self._buffer,
            self.slots,
            number,
            begin,
            _fixed(hashes, np.int32),
            _fixed(offsets, np.int64),
            _fixed(timestamps, np.int64),
        )


class IndexFileBuilder(IndexInserter):
    """Build one index file in anonymous memory, which the system gives as it is touched.

    Args:
        slots: hash slots of the file (`maxHashSlotNum`).
        max_entries: places for entries (`maxIndexNum`).
        previous_end_timestamp: the end timestamp (milliseconds) of the index file before this
            one, 0 for none. RocketMQ counts the seconds of the first entry from it.

    Raises:
        FormatError: sizes that no index file can have.
    """

    def __init__(
        self,
        slots: int = DEFAULT_SLOTS,
        max_entries: int = DEFAULT_MAX_ENTRIES,
        *,
        previous_end_timestamp: int = 0,
        kernel: Kernel | None = None,
    ) -> None:
        check_sizes(slots, max_entries)
        # Private: shared memory, Python's default, gets no huge pages, and faults take three times
        # as long as inserting does.
        self._memory = mmap.mmap(
            -1,
            index_file.file_size(slots, max_entries),
            flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
        )
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._memory.madvise(mmap.MADV_HUGEPAGE)
        header = IndexHeader(max(0, previous_end_timestamp), 0, 0, 0, 0, 1)
        buffer = np.frombuffer(self._memory, np.uint8)
        super().__init__(buffer, slots, max_entries, header, kernel)

    def view(self) -> memoryview:
        """Return the whole file's bytes. An entry's are final once it is inserted."""
        return memoryview(self._memory)

    def finish(self) -> memoryview:
        """Write the header; return the whole file's bytes."""
        self._memory[: index_file.HEADER_SIZE] = index_file.encode_header(self.header)
        return self.view()

    def close(self) -> None:
        """Give the memory back, once nobody holds a view of it."""
        self._buffer = np.zeros(0, np.uint8)
        with suppress(BufferError):  # a view is still in use: the memory goes with it
            self._memory.close()


def lookup_many(
    buffer: Bytes | memoryview | bytes,
    slots: int,
    max_entries: int,
    hashes: Ints,
    begin: int,
    end: int,
    limit: int,
    kernel: Kernel | None = None,
) -> tuple[Longs, Longs]:
    """Return the physical offsets that an index file holds for many key hashes.

    What RocketMQ's `IndexFile.selectPhyOffset` returns for each hash: newest first, at most
    `limit`, with store times (rounded to the file's seconds) from `begin` to `end`, in
    milliseconds. Offsets are as the file states them; other keys may have the same hash.

    Args:
        buffer: the file, or as much of it as there is.
        hashes: i4[n].

    Returns:
        (offsets i8[m], starts i8[n + 1]): hash i has offsets[starts[i]] … offsets[starts[i + 1]].
    """
    view = _fixed(np.frombuffer(buffer, np.uint8), np.uint8)
    fits = (len(view) - index_file.entry_at(slots, 0)) // index_file.ENTRY_SIZE
    bound = min(max_entries, fits)
    if slots < 1 or bound < 1 or limit < 1 or not len(hashes):
        return np.zeros(0, np.int64), np.zeros(len(hashes) + 1, np.int64)
    rows, offsets = (kernel or load()).lookup_entries(
        view,
        slots,
        bound,
        _fixed(hashes, np.int32),
        max(begin, _MIN_LONG),
        min(end, _MAX_LONG),
        limit,
    )
    order = np.argsort(rows, kind="stable")
    starts = np.zeros(len(hashes) + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=len(hashes)), out=starts[1:])
    return offsets[order], starts


class Relinked(NamedTuple):
    """What linking an index file's entries again found."""

    used_slots: int
    """Slots that the entries use; the header counts them."""
    wrong_links: int
    """Entries whose link is not the one before in their slot, or whose hash is negative."""
    first_wrong_link: int
    """Number of the first such entry, 0 for none."""
    wrong_slots: int
    """Slots whose value is not their last entry."""
    first_wrong_slot: int
    """The first such slot, -1 for none."""


def relink(
    buffer: Bytes | memoryview | bytes, slots: int, count: int, kernel: Kernel | None = None
) -> Relinked:
    """Compute slots and links from the entries' own hashes, and compare them with the file's.

    Args:
        buffer: the file, or as much of it as there is.
        count: the header's index count: the entries 1 … count - 1 are compared, or as many of
            them as the buffer holds.

    Raises:
        FormatError: the buffer does not even hold the slots.
    """
    view = _fixed(np.frombuffer(buffer, np.uint8), np.uint8)
    fits = (len(view) - index_file.entry_at(slots, 0)) // index_file.ENTRY_SIZE
    if slots < 1 or index_file.entry_at(slots, 0) > len(view):
        raise FormatError(f"{len(view)} bytes are too few for an index file of {slots} slots")
    return Relinked(*(kernel or load()).relink(view, slots, max(1, min(count, fits))))


def check_sizes(slots: int, max_entries: int) -> None:
    """Refuse sizes that no index file can have.

    Raises:
        FormatError: with the reason.
    """
    size = index_file.file_size(slots, max_entries)
    if slots < 1 or max_entries < 2 or size > _MAX_INT:
        raise FormatError(
            f"an index file cannot have {slots} slots and {max_entries} entries: it must have "
            "at least 1 and 2, and be smaller than 2 GiB"
        )


def _fixed(array: npt.NDArray[Any], kind: type[np.generic]) -> npt.NDArray[Any]:
    """Return the array as read-only: a kernel is compiled for each kind of array that it meets."""
    same = np.ascontiguousarray(array, kind).view()
    same.flags.writeable = False
    return same
