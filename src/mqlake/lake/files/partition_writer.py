"""Write rows to one Parquet file per topic and day: the work of a task of a micro-batch."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa

from mqlake.lake.files.data_file import DataFile, FileWriter
from mqlake.lake.files.lake_files import LakeFiles
from mqlake.lake.files.partition_paths import path_of
from mqlake.lake.files.row_checks import RowChecks
from mqlake.lake.files.row_partitions import Partition, sort

GATHERED = 128 << 20
"""Bytes of rows that a task holds before it writes."""

LEAST = 1 << 20
"""Minimum bytes of a partition's rows in a row group."""

ENDED = 2
"""A file ends at this multiple of the target size. A small next file is later merged with a file
of at most this size."""

MOST_OPEN = 64
"""Maximum number of files that a task writes at the same time."""

_NOTE = 128
"""Approximate bytes for noting where rows of a partition are: as much as a small row has."""


class WrittenFiles(msgspec.Struct, frozen=True):
    """The result of a task of a micro-batch.

    Attributes:
        log_bytes: size of the records in the log.
        unread: parts of the log that the task had to skip, as physical offsets [start, end).
    """

    files: list[DataFile]
    log_bytes: int
    unread: list[tuple[int, int]] = []


@dataclass(frozen=True)
class FileShape:
    """The form of the files of a table.

    Attributes:
        directory: their location; files are below directories `topic=…/day=…`.
        schema: Arrow schema of the columns in the files; other columns of the rows are left out.
        is_hive: whether directory names contain the exact topic, as Hive writes it. Otherwise
            they are for people.
        stem: the beginning of file names.
        target: bytes after which another file begins.
        files: writes them.
        checks: what rows must satisfy before they are written, if anything.
    """

    directory: str
    schema: Any
    is_hive: bool
    stem: str
    target: int
    files: LakeFiles = LakeFiles()  # noqa: RUF009 (frozen)
    checks: RowChecks | None = None

    def of(self, topic: str) -> FileShape:  # noqa: ARG002 (`TopicShapes` has several)
        """Return the shape of a topic's files."""
        return self


class Shapes(Protocol):
    """The shapes of a batch's files, by topic."""

    def of(self, topic: str) -> FileShape:
        """Return the shape of a topic's files."""
        ...


class _Rows(NamedTuple):
    """Rows of a batch. A slice of the batch would take several kilobytes."""

    batch: Any
    start: int
    count: int


class PartitionWriter:
    """Writes batches of rows to files by topic and UTC day of the store time.

    Rows are held until there are many; then each partition's rows are written to its file as one
    row group.
    """

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._schemas: dict[str, Any] = {}
        self._equal: dict[Any, Any] = {}
        self._gathered: dict[Partition, list[_Rows]] = {}
        self._sizes: dict[Partition, int] = {}
        self._size = 0
        self._open: OrderedDict[Partition, FileWriter] = OrderedDict()
        self._done: list[DataFile] = []

    def write(self, batch: Any) -> None:
        """Add the rows of a batch; they keep their order within a partition."""
        if not batch.num_rows:
            return
        found = sort(batch)
        by_schema: dict[int, Any] = {}
        for partition, start, count in found.parts:
            schema = self._schema(partition[0])
            if id(schema) not in by_schema:
                fitted = found.rows(_fitted(batch, schema))
                by_schema[id(schema)] = fitted, fitted.nbytes
            rows, size = by_schema[id(schema)]
            self._gather(partition, _Rows(rows, start, count), size * count // rows.num_rows)
        if self._size > GATHERED:
            self._flush_most()

    def finish(self) -> list[DataFile]:
        """Complete all files; return them once they are durable."""
        for partition in list(self._gathered):
            self._flush(partition)
        for partition in list(self._open):
            self._close(partition)
        return self._done

    def discard(self) -> None:
        """Remove what was written."""
        for writer in self._open.values():
            writer.discard()
        for file in self._done:
            self._shapes.of(file.topic).files.remove(file.path)

    def _schema(self, topic: str) -> Any:
        """Return the schema of a topic's files, one object for all equal schemas.

        Each table of a topic has its own object; rows would otherwise be held once per object.
        """
        schema = self._schemas.get(topic)
        if schema is None:
            schema = self._shapes.of(topic).schema
            schema = self._schemas[topic] = self._equal.setdefault(schema, schema)
        return schema

    def _gather(self, partition: Partition, rows: _Rows, size: int) -> None:
        size += _NOTE
        self._gathered.setdefault(partition, []).append(rows)
        self._sizes[partition] = self._sizes.get(partition, 0) + size
        self._size += size

    def _flush_most(self) -> None:
        """Write all partitions except small ones; if these are many, also the largest of them."""
        for partition in sorted(self._sizes, key=self._sizes.__getitem__, reverse=True):
            if self._sizes[partition] < LEAST and self._size <= GATHERED // 2:
                break
            self._flush(partition)
        self._copy_gathered()

    def _copy_gathered(self) -> None:
        """Copy the held rows, because their batches also contain rows of other partitions."""
        by_schema: dict[int, dict[Partition, list[_Rows]]] = {}
        for partition, parts in self._gathered.items():
            by_schema.setdefault(id(self._schema(partition[0])), {})[partition] = parts
        for gathered in by_schema.values():
            rows, at = _joined([part for parts in gathered.values() for part in parts]), 0
            for partition, parts in gathered.items():
                count = sum(part.count for part in parts)
                self._gathered[partition] = [_Rows(rows, at, count)]
                saved = _NOTE * (len(parts) - 1)
                self._sizes[partition] -= saved
                self._size -= saved
                at += count

    def _flush(self, partition: Partition) -> None:
        parts = self._gathered.pop(partition)
        self._size -= self._sizes.pop(partition)
        writer = self._writer(partition)
        writer.write([part.batch.slice(part.start, part.count) for part in parts])
        if writer.size >= ENDED * self._shapes.of(partition[0]).target:
            self._close(partition)

    def _writer(self, partition: Partition) -> FileWriter:
        if partition not in self._open:
            if len(self._open) >= MOST_OPEN:
                self._close(next(iter(self._open)))
            topic, day = partition
            shape = self._shapes.of(topic)
            names = path_of(topic, day, is_hive=shape.is_hive)
            directory = "/".join((shape.directory, *names))
            self._open[partition] = FileWriter(shape.files, directory, shape.stem, shape.schema)
        self._open.move_to_end(partition)
        return self._open[partition]

    def _close(self, partition: Partition) -> None:
        # If this fails, the file is still open, and `discard` closes and removes it.
        self._done.append(self._open[partition].finish(*partition))
        del self._open[partition]


def _fitted(batch: Any, schema: Any) -> Any:
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _joined(parts: list[_Rows]) -> Any:
    """Return one batch with the rows of parts, in order, copied."""
    by_batch: dict[int, list[int]] = {}
    for number, part in enumerate(parts):
        by_batch.setdefault(id(part.batch), []).append(number)
    starts = np.array([part.start for part in parts])
    counts = np.array([part.count for part in parts])
    taken = [
        parts[numbers[0]].batch.take(pa.array(_ranges(starts[numbers], counts[numbers])))
        for numbers in by_batch.values()
    ]
    order = np.concatenate(list(by_batch.values()))
    at = np.empty_like(counts)
    at[order] = np.cumsum(counts[order]) - counts[order]
    return pa.concat_batches(taken).take(pa.array(_ranges(at, counts)))


def _ranges(starts: Any, counts: Any) -> Any:
    """Return the numbers from each start on, as many as its count."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1])


def write_all(shape: Shapes, batches: Iterable[Any]) -> list[DataFile]:
    """Write batches; remove all files if that fails."""
    writer = PartitionWriter(shape)
    try:
        for batch in batches:
            writer.write(batch)
        return writer.finish()
    except BaseException:
        writer.discard()
        raise


def write_counted(shape: Shapes, batches: Iterable[Any]) -> WrittenFiles:
    """Write batches that have the columns `size` and `physicalOffset`."""
    log_bytes, last = 0, -1

    def counted() -> Iterator[Any]:
        nonlocal log_bytes, last
        for batch in batches:
            size, last = _log_bytes(batch, last)
            log_bytes += size
            yield batch

    files = write_all(shape, counted())
    return WrittenFiles(files, log_bytes)


def _log_bytes(batch: Any, before: int) -> tuple[int, int]:
    """Return the size of the records of rows, and the physical offset of the last row.

    The rows of an inner batch are one record, and may be in several batches.

    Args:
        before: the physical offset of the last row of the batch before.
    """
    sizes = batch.column("size").to_numpy(zero_copy_only=False)
    offsets = batch.column("physicalOffset").to_numpy(zero_copy_only=False)
    if not len(offsets):
        return 0, before
    found, rows = np.unique(offsets, return_index=True)
    return int(sizes[rows[found != before]].sum()), int(offsets[-1])
