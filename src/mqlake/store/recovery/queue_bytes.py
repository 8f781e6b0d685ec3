"""Read the files of consume queues as they will be, without changing them."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from mqlake.errors import StoreError
from mqlake.formats.consume_queue import ENTRY, QueueEntry
from mqlake.formats.file_name import segment_name
from mqlake.storage.protocol import Directory, ReadableFile
from mqlake.store.log.file_end import end_of_data
from mqlake.store.queues.queue_kind import SIMPLE, QueueKind

_MOST_OPEN = 8


class FoundQueue(NamedTuple):
    """A queue that has a directory.

    Attributes:
        bases: the position of each file's first byte within the whole queue, ascending.
        kind: for a batch consume queue, "queue offset" means the number of a unit here.
    """

    topic: str
    queue_id: int
    bases: tuple[int, ...] = ()
    kind: QueueKind = SIMPLE

    @property
    def path(self) -> str:
        """The directory of its files."""
        return f"{self.kind.directory}/{self.topic}/{self.queue_id}"

    @property
    def first(self) -> int:
        """The first queue offset in its files; 0 without files."""
        return self.bases[0] // self.kind.entry_size if self.bases else 0


class QueueBytes:
    """The bytes of queue files. A file that a crash left shorter is read as if zeros followed.

    Args:
        file_size: bytes of each file.
        kind: of the queues.

    Attributes:
        odd: paths of files that were read and have another size.
    """

    def __init__(self, directory: Directory, file_size: int, kind: QueueKind = SIMPLE) -> None:
        self.file_size, self.kind = file_size, kind
        self.entry_size = kind.entry_size
        self.odd: set[str] = set()
        self._directory = directory
        self._open: OrderedDict[str, ReadableFile] = OrderedDict()
        self._written: dict[FoundQueue, int] = {}

    def entry(self, queue: FoundQueue, queue_offset: int) -> QueueEntry | None:
        """Return the entry of a queue offset, None if no file has it.

        Raises:
            StoreError: its file cannot be read.
        """
        at = queue_offset * self.entry_size
        if queue_offset < 0 or at - at % self.file_size not in queue.bases:
            return None
        return QueueEntry(*ENTRY.unpack_from(self._read(queue, at, at + self.entry_size)))

    def entries(self, queue: FoundQueue, start: int, stop: int) -> list[QueueEntry]:
        """Return the entries of a simple queue's offsets, all of which are in files.

        Raises:
            StoreError: as for `read`.
        """
        return [QueueEntry(*entry) for entry in ENTRY.iter_unpack(self.read(queue, start, stop))]

    def read(self, queue: FoundQueue, start: int, stop: int) -> bytes:
        """Return the bytes of the entries of queue offsets, all of which are in files.

        Raises:
            StoreError: a file is missing, or cannot be read.
        """
        data, at, end = b"", start * self.entry_size, stop * self.entry_size
        while at < end:
            file_end = min(end, at - at % self.file_size + self.file_size)
            data += self._read(queue, at, file_end)
            at = file_end
        return data

    def written_end(self, queue: FoundQueue) -> int:
        """Return the queue offset after the last entry that is not all zero.

        Raises:
            StoreError: a file cannot be read.
        """
        # A start needs it twice, and computing it takes long in a store with many queues.
        end = self._written.get(queue)
        if end is None:
            end = self._written[queue] = self._find_written_end(queue)
        return end

    def _find_written_end(self, queue: FoundQueue) -> int:
        for base in reversed(queue.bases):
            file = self._file(queue, base)
            if end := end_of_data(file, 0, min(file.size, self.file_size)):
                return (base - -end // self.entry_size * self.entry_size) // self.entry_size
        return queue.first

    def _read(self, queue: FoundQueue, at: int, end: int) -> bytes:
        """Return bytes of a queue that are in one file."""
        base = at - at % self.file_size
        if base not in queue.bases:
            raise StoreError(f"{queue.path}: the file at byte {base} of the queue is missing")
        return self._file(queue, base).read(at - base, end - at).ljust(end - at, b"\0")

    def _file(self, queue: FoundQueue, base: int) -> ReadableFile:
        path = f"{queue.path}/{segment_name(base)}"
        file = self._open.get(path)
        if file is None:
            file = self._open[path] = self._directory.open(path)
            if file.size != self.file_size:
                self.odd.add(path)
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(path)
        return file

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()
        self._open.clear()
