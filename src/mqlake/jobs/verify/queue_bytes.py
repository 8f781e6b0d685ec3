"""Read a store's consume queue files by queue offset, in whole stretches."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator

from mqlake.errors import StoreError, raise_passing
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.formats.file_name import segment_name
from mqlake.jobs.queues.runs import QueueName
from mqlake.storage.protocol import Directory, ReadableFile
from mqlake.store.queues.queue_files import QueueFile, QueueFiles

_OPEN_QUEUES = 1024
_OPEN_FILES = 64


class QueueEntryReader:
    """The bytes of all queues of a store; bytes that are in no file are zero."""

    def __init__(self, store: Directory) -> None:
        self._store = store
        self._queues: OrderedDict[QueueName, list[QueueFile]] = OrderedDict()
        self._files: OrderedDict[str, ReadableFile] = OrderedDict()

    def files(self, queue: QueueName) -> list[QueueFile]:
        """Return the files of a queue, ascending."""
        files = self._queues.get(queue)
        if files is None:
            files = self._queues[queue] = QueueFiles(self._store, *queue).files
            if len(self._queues) > _OPEN_QUEUES:
                self._queues.popitem(last=False)
        return files

    def read(self, queue: QueueName, first: int, end: int) -> bytes:
        """Return the entries of queue offsets [first, end): 20 bytes each."""
        files = self.files(queue)
        parts: list[bytes] = []
        place = max(0, bisect_right(files, first, key=_first) - 1)
        at = first
        for file in files[place:]:
            start, stop = max(at, file.first), min(end, file.end)
            if start < stop:
                opened = self._open(queue, file)
                position, length = (start - file.first) * ENTRY_SIZE, (stop - start) * ENTRY_SIZE
                data = opened.read(position, length) if opened else b""
                parts += [bytes((start - at) * ENTRY_SIZE), data]
                at = start + len(data) // ENTRY_SIZE
            if stop >= end:
                break
        return b"".join(parts).ljust((end - first) * ENTRY_SIZE, b"\0")

    def written(self, queue: QueueName) -> Iterator[tuple[int, int]]:
        """Yield the stretches of queue offsets that are not holes of the files, ascending."""
        for file in self.files(queue):
            opened = self._open(queue, file)
            size = (file.end - file.first) * ENTRY_SIZE
            last = file.first
            for start, end in opened.data_ranges(0, size) if opened else ():
                first = max(last, file.first + start // ENTRY_SIZE)
                last = min(file.end, file.first - (-end // ENTRY_SIZE))
                yield first, last

    def place(self, queue: QueueName, queue_offset: int) -> tuple[str, int]:
        """Return the file that contains an entry or should contain it, and the position in it, in
        bytes.
        """
        files = self.files(queue)
        found = [file for file in files if file.first <= queue_offset]
        first = found[-1].first if found else queue_offset
        path = f"{queue.path}/{segment_name(first * ENTRY_SIZE)}"
        return path, (queue_offset - first) * ENTRY_SIZE

    def _open(self, queue: QueueName, file: QueueFile) -> ReadableFile | None:
        path = f"{queue.path}/{file.name}"
        opened = self._files.pop(path, None)
        if opened is None:
            try:
                opened = self._store.open(path)
            except StoreError as error:
                raise_passing(error)
                return None  # The file was deleted since it was listed.
        self._files[path] = opened
        if len(self._files) > _OPEN_FILES:
            self._files.popitem(last=False)[1].close()
        return opened


def _first(file: QueueFile) -> int:
    return file.first
