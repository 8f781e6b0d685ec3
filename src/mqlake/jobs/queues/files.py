"""Write consume queue files by position, so that any number of attempts leaves the same bytes.

An entry's position is its queue offset times 20, in files of a fixed size that are named by the
position of their first byte (Upstream: `ConsumeQueue`, `MappedFileQueue`).
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from mqlake.formats.consume_queue import BLANK_ENTRY, ENTRY_SIZE, encode
from mqlake.formats.file_name import segment_name
from mqlake.jobs.queues.runs import QueueName

MAX_QUEUE_OFFSET = ((1 << 63) - 1) // ENTRY_SIZE
"""No entry has this queue offset or a higher one: its position would not fit into 63 bits."""

_HELD_BYTES = 8 << 20
_OPEN_FILES = 64
_BLANKS = encode(BLANK_ENTRY) * 4096


def file_size_for(size: int) -> int:
    """Return the bytes of a file for a configured size: whole entries, at least one.

    RocketMQ rounds up (`MessageStoreConfig.getMappedFileSizeConsumeQueue`).
    """
    return max(1, -(-size // ENTRY_SIZE)) * ENTRY_SIZE


class QueueFileWriter:
    """Write stretches of entries below a directory, to `consumequeue/TOPIC/QUEUE/FILE`.

    Stretches are buffered up to a few megabytes, so that many small stretches of a queue become one
    write. Leaving the block writes the buffer.
    """

    def __init__(self, root: Path, file_size: int) -> None:
        self._root = root
        self._file_size = file_size_for(file_size)
        self._held: dict[QueueName, list[tuple[int, bytes]]] = {}
        self._held_bytes = 0
        self._open: OrderedDict[Path, int] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            for descriptor in self._open.values():
                os.close(descriptor)
            self._open.clear()

    def write(self, queue: QueueName, first: int, entries: bytes) -> None:
        """Write `entries` (20 bytes each) at queue offset `first` and following."""
        self._held.setdefault(queue, []).append((first * ENTRY_SIZE, entries))
        self._held_bytes += len(entries)
        if self._held_bytes >= _HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write all that is buffered."""
        for queue, stretches in self._held.items():
            directory = self._root / queue.path
            for position, data in _joined(stretches):
                self._put(directory, position, memoryview(data))
        self._held.clear()
        self._held_bytes = 0

    def write_blanks(self, queue: QueueName, first: int, end: int) -> None:
        """Fill queue offsets [first, end) with blank entries."""
        step = len(_BLANKS) // ENTRY_SIZE
        for at in range(first, end, step):
            self.write(queue, at, _BLANKS[: (end - at) * ENTRY_SIZE])

    def first_of_file(self, queue_offset: int) -> int:
        """Return the first queue offset of the file that contains `queue_offset`."""
        per_file = self._file_size // ENTRY_SIZE
        return queue_offset // per_file * per_file

    def _put(self, directory: Path, position: int, data: memoryview) -> None:
        while data:
            start = position // self._file_size * self._file_size
            share = data[: start + self._file_size - position]
            descriptor = self._descriptor(directory / segment_name(start))
            done = os.pwrite(descriptor, share, position - start)
            position, data = position + done, data[done:]

    def _descriptor(self, path: Path) -> int:
        descriptor = self._open.pop(path, -1)
        if descriptor < 0:
            if len(self._open) >= _OPEN_FILES:
                os.close(self._open.popitem(last=False)[1])
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            os.ftruncate(descriptor, self._file_size)
        self._open[path] = descriptor
        return descriptor


def _joined(stretches: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Join adjacent neighbours, keeping the order: a later write to the same position wins."""
    at, parts = 0, list[bytes]()
    end = -1
    for position, data in stretches:
        if position != end:
            if parts:
                yield at, b"".join(parts)
            at, parts, end = position, [], position
        parts.append(data)
        end += len(data)
    if parts:
        yield at, b"".join(parts)
