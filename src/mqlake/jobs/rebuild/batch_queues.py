"""Rebuild batch consume queues (docs/formats/batch_consume_queue.md).

The position of a unit does not follow from a queue offset, only from the units before it. So tasks
write the units of their splits to a scratch file, and the driver joins them.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from mqlake.dispatch.batch import Batch
from mqlake.formats import batch_consume_queue
from mqlake.formats.batch_consume_queue import DEFAULT_FILE_SIZE, UNIT_SIZE, BatchQueueUnit
from mqlake.formats.file_name import check_topic_name, parse_segment_name, segment_name
from mqlake.jobs.queues.batch_units import units_of
from mqlake.jobs.queues.carry_over import link
from mqlake.jobs.queues.deletions import QueueTracer
from mqlake.jobs.queues.runs import QueueName, queues_of
from mqlake.jobs.source import StoreSource
from mqlake.storage.read_file import read_file
from mqlake.store.queues.owned_queue import MOST_BLANKS
from mqlake.store.queues.queue_kind import BATCH

_MOST_HELD = 8 << 20
_LARGEST_FILE = 1 << 31


class UnitPiece(msgspec.Struct, frozen=True):
    """Units of one queue in a scratch file: `count` of them from byte `position` on."""

    path: str
    topic: str
    queue_id: int
    position: int
    count: int


class UnitWriter:
    """Write the units of a task's living records to a scratch file in `directory`, if any.

    Args:
        topics: those with batch consume queues.
    """

    def __init__(self, directory: Path, topics: Collection[str], tracer: QueueTracer) -> None:
        self._path, self._topics = directory / uuid.uuid4().hex, topics
        self._tracer = tracer
        self._held: dict[tuple[str, int], bytearray] = {}
        self._held_bytes = self._written = 0
        self._pieces: list[UnitPiece] = []

    def take(self, batch: Batch) -> None:
        """Remove the records of batch consume queues from a scanned batch, and keep their units."""
        for queue, units in units_of(batch, self._topics):
            living = self._tracer.living_units(queue, units)
            encoded = b"".join(map(batch_consume_queue.encode, living))
            self._held.setdefault(queue, bytearray()).extend(encoded)
            self._held_bytes += len(encoded)
        if self._held_bytes > _MOST_HELD:
            self._flush()

    def finish(self) -> list[UnitPiece]:
        """Return the positions of all units."""
        self._flush()
        return self._pieces

    def _flush(self) -> None:
        if not self._held_bytes:
            return
        with self._path.open("ab") as file:
            for (topic, queue_id), units in self._held.items():
                if units:
                    count = len(units) // UNIT_SIZE
                    path, position = str(self._path), self._written
                    self._pieces.append(UnitPiece(path, topic, queue_id, position, count))
                    file.write(units)
                    self._written += len(units)
        self._held.clear()
        self._held_bytes = 0


class BatchQueues(NamedTuple):
    """The numbers of rebuilt queues, of their units, of implausible units that were left out, and
    of queues that were kept.
    """

    queues: int
    units: int
    refused: int
    kept: int


def rebuild_batch_queues(
    source: StoreSource, pieces: Sequence[UnitPiece], new: Path, *, in_place: bool
) -> BatchQueues:
    """Write the files of all batch consume queues below `new`.

    The log's first unit may be in the middle of a file, and only the old file tells its position.
    If an old file contains it, the units before it in that file are copied.

    Args:
        pieces: the units, in the order of the log.
        in_place: keep the queues whose records are all gone, because their files contain the next
            offset.
    """
    by_queue: dict[QueueName, list[UnitPiece]] = {}
    for piece in pieces:
        by_queue.setdefault(QueueName(piece.topic, piece.queue_id), []).append(piece)
    old = {queue: _OldFiles(source, *queue) for queue in queues_of(source.directory, BATCH)}
    sizes = (size for files in old.values() if (size := files.size))
    size = BATCH.file_size(next(sizes, DEFAULT_FILE_SIZE))
    units = refused = kept = 0
    for queue, parts in sorted(by_queue.items()):
        files = _BatchQueueWriter(new / _path(*queue), size)
        with files:
            refused += files.write_all(_units(parts), old.get(queue))
        units += files.units
    if in_place:
        kept = sum(old[queue].keep(new) for queue in sorted(old.keys() - by_queue.keys()))
    return BatchQueues(len(by_queue), units, refused, kept)


def _units(pieces: Sequence[UnitPiece]) -> Iterator[BatchQueueUnit]:
    for piece in pieces:
        with Path(piece.path).open("rb") as file:
            file.seek(piece.position)
            for _ in range(piece.count):
                yield batch_consume_queue.decode(file.read(UNIT_SIZE))


class _BatchQueueWriter:
    """Writes the files of one queue in order."""

    def __init__(self, directory: Path, size: int) -> None:
        self._directory, self._size = directory, size
        self._at = self._end = self.units = 0
        self._held = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        if kind is None:
            self._flush()

    def write_all(self, units: Iterator[BatchQueueUnit], old: _OldFiles | None) -> int:
        """Write units after those of the old files; return how many cannot be written.

        As in the live store, the first record of the log that contains a queue offset owns it.
        """
        refused = 0
        for unit in units:
            if not self.units and old is not None:
                self._at, self._held = old.before(unit, self._size)
            if unit.base_offset < self._end:
                continue
            if self.units and unit.base_offset - self._end > MOST_BLANKS:
                refused += 1
                continue
            self._held += batch_consume_queue.encode(unit)
            self._end, self.units = unit.end_offset, self.units + 1
            if self._at % self._size + len(self._held) == self._size:
                self._flush()
        return refused

    def _flush(self) -> None:
        if not self._held:
            return
        base = self._at - self._at % self._size
        self._directory.mkdir(parents=True, exist_ok=True)
        with (self._directory / segment_name(base)).open("wb") as file:
            file.write(self._held)
            file.truncate(self._size)
        self._at = base + self._size
        self._held.clear()


def _path(topic: str, queue_id: int) -> str:
    return f"{BATCH.directory}/{check_topic_name(topic)}/{queue_id}"


class _OldFiles:
    """The files of a queue of the store."""

    def __init__(self, source: StoreSource, topic: str, queue_id: int) -> None:
        self._source, self._path = source, _path(topic, queue_id)
        found = ((parse_segment_name(name), name) for name in source.directory.names(self._path))
        self._names = sorted((base, name) for base, name in found if base is not None)

    @property
    def size(self) -> int:
        """Size of the first file in bytes; 0 if it is too small for a unit, or 2 GiB or more."""
        if not self._names:
            return 0
        size = self._source.directory.size(f"{self._path}/{self._names[0][1]}")
        return size if UNIT_SIZE <= size < _LARGEST_FILE and size % UNIT_SIZE == 0 else 0

    def _files(self) -> Iterator[tuple[int, bytes]]:
        """Yield the position of the first byte and the bytes of each file, ascending."""
        for base, name in self._names:
            path = f"{self._path}/{name}"
            yield base, read_file(self._source.directory, path, _LARGEST_FILE) or b""

    def before(self, first: BatchQueueUnit, size: int) -> tuple[int, bytearray]:
        """Return where the file with a unit begins, and its bytes before that unit.

        Args:
            size: bytes of each file.
        """
        wanted = batch_consume_queue.encode(first)
        for base, data in self._files():
            at = data.find(wanted)
            if at >= 0 and at % UNIT_SIZE == 0 and base % size == 0:
                return base, bytearray(data[:at])
        return 0, bytearray()

    def keep(self, new: Path) -> bool:
        """Link the files into `new` if their records are all gone; return whether they are."""
        last = None
        for _, data in self._files():
            for at in range(0, len(data) - UNIT_SIZE + 1, UNIT_SIZE):
                unit = batch_consume_queue.decode(data, at)
                if not batch_consume_queue.is_written(unit):
                    break
                last = unit
        if last is None or last.physical_offset >= self._source.log.min_offset:
            return False
        (new / self._path).mkdir(parents=True, exist_ok=True)
        root = self._source.directory.root
        for _, name in self._names:
            link(root / self._path / name, new / self._path / name)
        return True
