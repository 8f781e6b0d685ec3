"""One file of light queues that this process writes (docs/formats/light_queue_file.md)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.batch import Bytes
from mqlake.formats.light import light_queue_file
from mqlake.formats.light.light_queue_file import (
    ENTRY,
    ENTRY_SIZE,
    HEADER_SIZE,
    SLOT,
    LightEntry,
    LightHeader,
)
from mqlake.storage.protocol import WritableFile
from mqlake.store.light.light_columns import (
    LightAppended,
    LightBounds,
    LightBuffer,
    LightMessages,
    Newest,
)
from mqlake.store.light.light_kernel import LightKernel

_ENTRY = np.dtype(
    [
        ("hash", ">u8"),
        ("physical_offset", ">i8"),
        ("queue_offset", ">i8"),
        ("size", ">i4"),
        ("slot_previous", ">i4"),
        ("previous", ">i4"),
        ("jump", ">i4"),
    ]
)


class LightFile:
    """A file of light queues, mapped: the entries of one topic in one segment of the log.

    Args:
        capacity: how many entries fit.
    """

    def __init__(self, file: WritableFile, header: LightHeader, capacity: int) -> None:
        self.file, self._capacity = file, capacity
        self._view = file.mapping()
        self._data: Bytes = np.frombuffer(self._view, np.uint8)
        self.base, self.seed, self._slots, self._count, self._queues = header
        self._entries_at = light_queue_file.entry_at(self._slots, 0)
        self.last_physical = self.entry(self._count - 1).physical_offset if self._count > 1 else -1

    @property
    def header(self) -> LightHeader:
        """The header as it is now."""
        return LightHeader(self.base, self.seed, self._slots, self._count, self._queues)

    @property
    def count(self) -> int:
        """How many entries the file has."""
        return self._count - 1

    @property
    def queues(self) -> int:
        """How many queues have an entry in the file."""
        return self._queues

    def entry(self, number: int) -> LightEntry:
        """Return one of its entries; the first one has the number 1."""
        return LightEntry(*ENTRY.unpack_from(self._view, self._entries_at + number * ENTRY_SIZE))

    def newest(self, name_hash: int) -> int:
        """Return the number of a queue's newest entry; 0 without one."""
        (number,) = SLOT.unpack_from(self._view, light_queue_file.slot_at(self._slots, name_hash))
        limit = self._count
        # A link that does not lead backwards ends the walk, whatever the bytes are.
        while 0 < number < limit:
            found, *_, slot_previous, _, _ = ENTRY.unpack_from(
                self._view, self._entries_at + number * ENTRY_SIZE
            )
            if found == name_hash:
                return number
            limit, number = number, slot_previous
        return 0

    def at_or_after(self, newest: int, queue_offset: int, first: int) -> int:
        """Return the number of a queue's oldest entry at or after a queue offset; 0 without one.

        Args:
            newest: the number of an entry of the queue, where the search begins.
            first: physical offset before which no record counts.
        """
        number, limit, links = 0, self._count, (newest,)
        while True:
            for link in links:
                if not 0 < link < limit:
                    continue
                entry = self.entry(link)
                if entry.queue_offset >= queue_offset and entry.physical_offset >= first:
                    number = limit = link
                    links = entry.jump, entry.previous
                    break
            else:
                return number

    @property
    def buffer(self) -> LightBuffer:
        """The file as kernels know it."""
        return LightBuffer(
            self._data, self._slots, self._capacity, self.base, self._count, self._queues
        )

    def append(
        self,
        kernel: LightKernel,
        newest: Newest,
        messages: LightMessages,
        first: int,
        bounds: LightBounds,
        accepted: npt.NDArray[np.bool_],
    ) -> LightAppended:
        """Append the entries of messages: see `LightKernel.append`.

        Raises:
            DiskError: there is no room on the disk; nothing was appended.
        """
        start = self._entries_at + self._count * ENTRY_SIZE
        most = min(len(messages) - first, max(0, self._capacity - self.count))
        self.file.reserve(0, self._entries_at)
        self.file.reserve(start, most * ENTRY_SIZE)
        done = kernel.append(self.buffer, newest, messages, first, bounds, accepted)
        length = (done.following - self._count) * ENTRY_SIZE
        self._count, self._queues = done.following, done.queues
        if done.end == len(messages):
            self.last_physical = int(messages["physical_offset"][-1])
        if length and self.file.is_watched:
            self.file.written(start, length)
        self._write_header()
        return done

    def begin(self) -> None:
        """Write the header of a new file.

        Raises:
            DiskError: there is no room on the disk.
        """
        self.file.reserve(0, self._entries_at)
        self._write_header()

    def _write_header(self) -> None:
        self._view[:HEADER_SIZE] = light_queue_file.encode_header(self.header)
        if self.file.is_watched:
            self.file.written(0, self._entries_at)

    def close(self) -> None:
        """Close the file; views of it stay valid."""
        self._view, self._data = memoryview(b""), np.zeros(0, np.uint8)
        self.file.close()

    # All entries

    def _entries(self) -> npt.NDArray[np.void]:
        start = self._entries_at + ENTRY_SIZE
        data = self._data[start : start + self.count * ENTRY_SIZE]
        return data.view(_ENTRY)

    def names_in_steps(self) -> Iterator[int]:
        """Yield the hashes of the names of its queues, each once; none is read far ahead."""
        for first in range(0, self.count, _AT_ONCE):
            some = self._entries()[first : first + _AT_ONCE]
            yield from some["hash"][some["previous"] == 0].tolist()

    def keep_before(self, physical_offset: int) -> None:
        """Keep only the entries of records before a physical offset, and compute the slots again.

        A process that died may have left others in any state.

        Raises:
            DiskError: there is no room on the disk.
        """
        entries = self._whole_entries()
        offsets = entries["physical_offset"].astype(np.int64)
        kept = _first_false(offsets < physical_offset)
        entries = entries[:kept]
        self._count = kept + 1
        self._queues = int(np.count_nonzero(entries["previous"] == 0))
        self.last_physical = int(offsets[kept - 1]) if kept else -1
        heads = np.zeros(self._slots, ">i4")
        slots = (entries["hash"].astype(np.uint64) % np.uint64(self._slots)).astype(np.int64)
        heads[slots] = np.arange(1, kept + 1)  # If a slot occurs twice, the later one remains.
        begin = light_queue_file.encode_header(self.header) + heads.tobytes()
        if self._view[: self._entries_at].tobytes() != begin:
            self.file.reserve(0, self._entries_at)
            self._view[HEADER_SIZE : self._entries_at] = heads.tobytes()
            self._write_header()
        self._clear_behind()

    def _whole_entries(self) -> npt.NDArray[np.void]:
        """Return the entries from the first on that are whole, whatever the header counts."""
        start = self._entries_at + ENTRY_SIZE
        end = start + (len(self._view) - start) // ENTRY_SIZE * ENTRY_SIZE
        end = next((stop for _, stop in self.file.data_ranges(start, end)), start)
        length = (end - start) // ENTRY_SIZE * ENTRY_SIZE
        entries = self._data[start : start + length].view(_ENTRY)
        numbers = np.arange(1, len(entries) + 1)
        good = (entries["size"] > 0) & (entries["physical_offset"] >= self.base)
        for column in ("slot_previous", "previous"):
            good &= (entries[column] >= 0) & (entries[column] < numbers)
        good &= (entries["jump"] > 0) & (entries["jump"] <= numbers)
        good[1:] &= np.diff(entries["physical_offset"].astype(np.int64)) >= 0
        return entries[: _first_false(good)]

    def _clear_behind(self) -> None:
        start = self._entries_at + self._count * ENTRY_SIZE
        for first, stop in self.file.data_ranges(start, len(self._view)):
            for at in range(first, stop, _STEP):
                end = min(at + _STEP, stop)
                if any(self._view[at:end]):
                    self.file.write(at, bytes(end - at))


_STEP = 1 << 20
_AT_ONCE = 1 << 10
"""Entries that are read between two looks at other work."""


def _first_false(values: npt.NDArray[np.bool_]) -> int:
    """Return the position of the first value that is false; their number without one."""
    wrong = np.flatnonzero(~values)
    return int(wrong[0]) if len(wrong) else len(values)
