"""One consume queue that this process writes (docs/formats/consume_queue.md).

Upstream: `ConsumeQueue`, `MappedFileQueue`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable

from mqlake.errors import DiskError, StoreError
from mqlake.formats import consume_queue
from mqlake.formats.consume_queue import BLANK_ENTRY, ENTRY, QueueEntry
from mqlake.formats.file_name import check_topic_name, segment_name
from mqlake.storage.protocol import Buffer
from mqlake.store.log.file_end import end_of_data
from mqlake.store.queues.owned_queue_files import OwnedQueueFiles
from mqlake.store.queues.queue_kind import SIMPLE, QueueKind

MOST_BLANKS = 1 << 20
"""Maximum number of blank entries that fill the positions of missing records.

A record that leaves more of them empty is implausible, and gets no entry.
"""

_LARGEST = (1 << 63) - 1
_BLANK = consume_queue.encode(BLANK_ENTRY)
_BLANK_STEP = 4096


class OwnedQueue:
    """The entries of one queue: those from `first` to `end` are in its files.

    Args:
        kind: for a batch consume queue, "queue offset" means the number of a unit here.

    Attributes:
        end: the queue offset of the next message.
        bases: the position of each file's first byte within the whole queue, ascending.
    """

    def __init__(
        self, files: OwnedQueueFiles, topic: str, queue_id: int, kind: QueueKind = SIMPLE
    ) -> None:
        self.topic, self.queue_id = topic, queue_id
        self.path = f"{kind.directory}/{check_topic_name(topic)}/{queue_id}"
        self._entry_size, self._file_size = kind.entry_size, files.file_size_of(kind)
        self.bases: list[int] = []
        self.end = 0
        self._files = files
        self._last_base: int = -1
        self._last_path = ""
        self._min_offset, self._min_physical = 0, -1

    def adopt(self, bases: Iterable[int], end: int) -> None:
        """Become a queue that already has files, and ends at an offset."""
        self.bases, self.end = list(bases), end

    @property
    def first(self) -> int:
        """The first queue offset in its files; without files, that of the next message."""
        return self.bases[0] // self._entry_size if self.bases else self.end

    def file_path(self, base: int) -> str:
        """Return the path of the file that begins at byte `base` of the queue."""
        return f"{self.path}/{segment_name(base)}"

    # Append

    def append(self, first: int, entries: bytes | Buffer) -> int:
        """Write entries (20 bytes each) at queue offset `first` and following; return how many.

        A position that has an entry keeps it: the first record of the log that contains a queue
        offset owns it. Positions of missing records are filled with blank entries.

        Raises:
            DiskError: some may have been written; repeating the call completes them.
        """
        end = self.end
        if first != end:
            if first < end:
                entries = memoryview(entries)[(end - first) * self._entry_size :]
                if not entries:
                    return 0
                first = end
            elif first > end and not self._fill_to(first):
                return 0
        self.write(first, entries)
        count = len(entries) // self._entry_size
        self.end = first + count
        return count

    def _fill_to(self, first: int) -> bool:
        """Write blank entries from the end, or from a new queue's first file on, to `first`."""
        start = self.end
        if not self.bases:
            per_file = self._file_size // self._entry_size
            start = first // per_file * per_file
        if first >= _LARGEST // self._entry_size or first - start > max(
            MOST_BLANKS, self._file_size
        ):
            return False
        # The minimum offset of a queue without entries was its end, which gets a blank entry now.
        self._min_physical = -1
        self.write_blanks(start, first)
        return True

    def write_blanks(self, start: int, end: int) -> None:
        """Fill the queue offsets from `start` to `end` with blank entries."""
        for at in range(start, end, _BLANK_STEP):
            self.write(at, _BLANK * min(_BLANK_STEP, end - at))

    def write(self, first: int, entries: bytes | Buffer) -> None:
        """Write bytes at the position of queue offset `first`, creating files as needed."""
        at, size = first * self._entry_size, self._file_size
        base = at - at % size
        if base + size < at + len(entries):
            share = base + size - at
            self.write(first, memoryview(entries)[:share])
            self.write(first + share // self._entry_size, memoryview(entries)[share:])
            return
        if base != self._last_base:
            if base not in self.bases:
                self._files.make_file(self.file_path(base), size, is_first=not self.bases)
                self.bases.append(base)
                self.bases.sort()
                # The write below may be refused. A new queue then begins at this file all the same:
                # if it still ended at 0, the next call would write blank entries from 0 on, or
                # consider the record implausible.
                self.end = max(self.end, self.first)
            # This comes last: a file that could not be created is created by the next write.
            self._last_base, self._last_path = base, self.file_path(base)
        self._files.write(self._last_path, at - base, entries)

    # Read

    def read(self, start: int, count: int) -> bytes | memoryview:
        """Return the entries of `count` queue offsets from `start` on, fewer at the end.

        Raises:
            DiskError: the system refused an operation; the same call may succeed later.
            StoreError: the file of an entry no longer exists.
        """
        start = max(start, self.first)
        stop = min(start + count, self.end)
        parts: list[memoryview] = []
        while start < stop:
            data = self._read_from_file(start, stop)
            if not data:
                raise StoreError(f"{self.path}: the entry of queue offset {start} is missing")
            parts.append(data)
            start += len(data) // self._entry_size
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_from_file(self, start: int, stop: int) -> memoryview:
        at, size = start * self._entry_size, self._file_size
        base = at - at % size
        if base not in self.bases:
            return memoryview(b"")
        path = self._last_path if base == self._last_base else self.file_path(base)
        length = min(stop * self._entry_size, base + size) - at
        try:
            data = self._files.file(path).view()[at - base : at - base + length]
        except DiskError as error:
            if error.errno != errno.ENOENT:
                raise  # The file exists, so this must not look as if its entries did not.
            return memoryview(b"")
        return data[: len(data) // self._entry_size * self._entry_size]

    def file_of(self, queue_offset: int) -> tuple[int, memoryview] | None:
        """Return the file with the entry of a queue offset, None if it does not exist.

        Returns:
            The queue offset of its first entry, and the bytes of the file.

        Raises:
            DiskError: the file cannot be opened.
        """
        at = queue_offset * self._entry_size
        base = at - at % self._file_size
        if base not in self.bases:
            return None
        return base // self._entry_size, self._files.file(self.file_path(base)).view()

    def entry(self, queue_offset: int) -> QueueEntry | None:
        """Return the entry of a queue offset, or None if no file has it.

        Raises:
            StoreError: its file was removed.
        """
        data = self._read_from_file(queue_offset, queue_offset + 1) if queue_offset >= 0 else None
        if data:
            return QueueEntry(*ENTRY.unpack_from(data))
        at = queue_offset * self._entry_size
        if at - at % self._file_size in self.bases:
            raise StoreError(
                f"{self.path}: the file with queue offset {queue_offset} was removed while it was"
                " in use; restore it and start again"
            )
        return None

    def min_offset(self, min_physical_offset: int) -> int:
        """Return the first queue offset whose record is at or after a physical offset.

        `end` if no record is. Upstream: `correctMinOffset`.
        """
        if self._min_physical != min_physical_offset or self._min_offset >= self.end:
            self._min_offset = self._search(min_physical_offset)
            self._min_physical = min_physical_offset
        return self._min_offset

    def _search(self, physical_offset: int) -> int:
        low, high = self.first, self.end
        while low < high:
            middle = (low + high) // 2
            entry = self.entry(middle)
            if entry is None or entry == BLANK_ENTRY or entry.physical_offset < physical_offset:
                low = middle + 1
            else:
                high = middle
        return low

    # Trim, recover

    def trim(self, min_physical_offset: int) -> int:
        """Remove the files whose records are all before a physical offset, never the last one.

        Returns:
            The number of removed files. Upstream: `deleteExpiredFileByOffset`.
        """
        count = 0
        while len(self.bases) > 1:
            last = self.entry(self.bases[1] // self._entry_size - 1)
            if last is not None and last.physical_offset >= min_physical_offset:
                break
            self.remove_file(self.bases[0])
            count += 1
        return count

    def remove_file(self, base: int) -> None:
        """Remove one file."""
        self._files.remove_file(self.file_path(base))
        self.bases.remove(base)
        self._last_base = self._min_physical = -1

    def end_at(self, queue_offset: int) -> None:
        """End the queue at an offset: everything after it becomes zero, later files are removed."""
        self.end, self._min_physical = queue_offset, -1
        at = queue_offset * self._entry_size
        # The first file stays: only its name records the next offset of the queue.
        for base in [base for base in self.bases[1:] if base >= at]:
            self.remove_file(base)
        if self.bases and self.bases[-1] <= at:
            path = self.file_path(self.bases[-1])
            file = self._files.file(path)
            start = at - self.bases[-1]
            if (end := end_of_data(file, start, file.size)) > start:
                self._files.write(path, start, bytes(end - start))

    def forget(self) -> None:
        """Become a queue without files, which starts at 0 again."""
        self.bases.clear()
        self.end = 0
        self._last_base = self._min_physical = -1
