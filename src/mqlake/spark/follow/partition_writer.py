"""Write rows to one Parquet file a topic and day: what a task of a micro-batch does."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa

from mqlake.spark.failure import Attempt
from mqlake.spark.follow.data_file import DataFile, FileWriter
from mqlake.spark.follow.lake_files import LakeFiles

GATHERED = 64 << 20
"""Bytes of rows that a task keeps before it writes."""

MOST_OPEN = 64
"""Files that a task writes at a time."""

RESULT = "written binary"

_DAY = 86_400_000_000
_EPOCH = date(1970, 1, 1)
_LONGEST_NAME = 100


class Written(msgspec.Struct, frozen=True):
    """What a task of a micro-batch wrote.

    Attributes:
        log_bytes: size of the records in the log.
    """

    files: list[DataFile]
    log_bytes: int


@dataclass(frozen=True)
class Shape:
    """How the files of a table are to be.

    Attributes:
        directory: where they go, below directories `topic=…/day=…`.
        schema: Arrow schema of the columns in the files; others of the rows are left out.
        is_hive: directory names say exactly what topic it is, as Hive writes it. Else they are for
            people.
        stem: what file names begin with.
        target: bytes after which a file is followed by another.
        files: what writes them.
    """

    directory: str
    schema: Any
    is_hive: bool
    stem: str
    target: int
    files: LakeFiles = LakeFiles()  # noqa: RUF009 (frozen)

    def of(self, topic: str) -> Shape:  # noqa: ARG002 (`TopicShapes` has several)
        """Return the shape of a topic's files."""
        return self


class Shapes(Protocol):
    """The shapes of a batch's files, by topic."""

    def of(self, topic: str) -> Shape:
        """Return the shape of a topic's files."""
        ...


class PartitionWriter:
    """Write batches of rows to files by topic and UTC day of the store time."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._gathered: dict[tuple[str, str], list[Any]] = {}
        self._sizes: dict[tuple[str, str], int] = {}
        self._open: OrderedDict[tuple[str, str], FileWriter] = OrderedDict()
        self._done: list[DataFile] = []

    def write(self, batch: Any) -> None:
        """Take the rows of a batch; their order within a partition stays."""
        for partition, rows in split(batch):
            schema = self._shapes.of(partition[0]).schema
            columns = [rows.column(field.name).cast(field.type) for field in schema]
            rows = pa.RecordBatch.from_arrays(columns, schema=schema)
            self._gathered.setdefault(partition, []).append(rows)
            self._sizes[partition] = self._sizes.get(partition, 0) + rows.nbytes
        while sum(self._sizes.values()) > GATHERED:
            self._flush(max(self._sizes, key=self._sizes.__getitem__))

    def finish(self) -> list[DataFile]:
        """Complete all files; return them once they are on the disk."""
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

    def _flush(self, partition: tuple[str, str]) -> None:
        batches = self._gathered.pop(partition)
        del self._sizes[partition]
        writer = self._writer(partition)
        writer.write(batches)
        if writer.size >= self._shapes.of(partition[0]).target:
            self._close(partition)

    def _writer(self, partition: tuple[str, str]) -> FileWriter:
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

    def _close(self, partition: tuple[str, str]) -> None:
        self._done.append(self._open.pop(partition).finish(*partition))


def split(batch: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield ((topic, day), rows) of a batch with the columns `topic` and `storeTimestamp`."""
    topics = batch.column("topic").dictionary_encode()
    times = batch.column("storeTimestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    days = times.to_numpy(zero_copy_only=False) // _DAY
    pairs = np.stack([topics.indices.to_numpy(zero_copy_only=False).astype(np.int64), days])
    keys, numbers = np.unique(pairs, axis=1, return_inverse=True)
    order = np.argsort(numbers.reshape(-1), kind="stable")
    starts = np.searchsorted(numbers.reshape(-1)[order], np.arange(keys.shape[1] + 1))
    for number in range(keys.shape[1]):
        topic = topics.dictionary[int(keys[0, number])].as_py()
        day = (_EPOCH + timedelta(days=int(keys[1, number]))).isoformat()
        rows = order[starts[number] : starts[number + 1]]
        whole = len(rows) == batch.num_rows
        yield (topic, day), batch if whole else batch.take(pa.array(rows))


def path_of(topic: str, day: str, *, is_hive: bool) -> tuple[str, str]:
    """Return the names of a partition's directories."""
    if is_hive:
        return f"topic={quote(topic, safe='')}", f"day={day}"
    return f"topic={re.sub(r'[^A-Za-z0-9._-]', '_', topic)[:_LONGEST_NAME]}", f"day={day}"


def write_all(shape: Shapes, batches: Iterable[Any]) -> list[DataFile]:
    """Write batches; leave nothing behind where that fails."""
    writer = PartitionWriter(shape)
    try:
        for batch in batches:
            writer.write(batch)
        return writer.finish()
    except BaseException:
        writer.discard()
        raise


def write_counted(shape: Shapes, batches: Iterable[Any]) -> Written:
    """Write batches that have the column `size`."""
    log_bytes = 0

    def counted() -> Iterator[Any]:
        nonlocal log_bytes
        for batch in batches:
            log_bytes += int(batch.column("size").to_numpy(zero_copy_only=False).sum())
            yield batch

    files = write_all(shape, counted())
    return Written(files, log_bytes)


def task(shape: Shapes) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function for `mapInArrow`: rows in, what was written out (`RESULT`)."""

    attempt: Attempt[Any, Written] = Attempt(partial(write_counted, shape))

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        yield encode(attempt(batches))

    return run


def encode(written: Written) -> Any:
    """Return what a task wrote as the row that it hands to the driver."""
    encoded = pa.array([msgspec.json.encode(written)], pa.binary())
    return pa.RecordBatch.from_arrays([encoded], names=["written"])
