"""Stage the rows of a task as records that lack only their position."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np

from mqlake.dispatch.kernel import load
from mqlake.dispatch.writing.encode import write_records
from mqlake.errors import FormatError, StoreError
from mqlake.formats import record, record_crc, sys_flag
from mqlake.formats.host import V4_SIZE, V6_SIZE
from mqlake.spark.sink.drafts import BatchEncoder, Laid
from mqlake.spark.sink.options import WriteOptions
from mqlake.spark.sink.staged import STAGED, Frame, StagedFile, write_frame

FRAME_SIZE = 8 << 20
"""Bytes of records in a frame; a single record may exceed it."""

_BATCH_SIZE = 16 << 20


def stage(
    batches: Iterable[Any], directory: Path, options: WriteOptions, largest_record: int, task: int
) -> StagedFile:
    """Write the rows of a task to its own file in an existing directory.

    Args:
        batches: `pyarrow.RecordBatch`es.
        largest_record: the maximum size of a record, in bytes.
        task: the number of the task within the write.

    Raises:
        FormatError: a row cannot be stored.
        StoreError: the directory does not exist, or the disk failed.
    """
    name = f"{task}-{uuid4().hex}"
    path = directory / name
    try:
        with path.open("xb", buffering=0) as file:
            append_crc = options.settings.enabled_append_prop_crc
            staging = _Staging(file, largest_record, append_crc=append_crc)
            layout = BatchEncoder(options, largest_record, task)
            for batch in _slices(batches):
                staging.add(layout.lay_out(batch))
    except BaseException as error:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = f"{error.strerror}; all hosts must see the store's directory"
            raise StoreError(f"{path}: {reason}") from None
        raise
    return staging.part(name)


def _slices(batches: Iterable[Any]) -> Iterator[Any]:
    """Split batches so that the records of each part remain small."""
    for batch in batches:
        rows = max(1, _BATCH_SIZE * len(batch) // max(1, batch.nbytes))
        for first in range(0, len(batch), rows):
            yield batch.slice(first, rows)


class _Staging:
    def __init__(self, file: BinaryIO, largest_record: int, *, append_crc: bool) -> None:
        self._file, self._largest, self._kernel = file, largest_record, load()
        self._append_crc = append_crc
        self._scratch = np.empty(FRAME_SIZE, np.uint8)
        self._numbers: dict[tuple[str, int], int] = {}
        self._counts: list[int] = []
        self._size = self._rows = 0

    def part(self, name: str) -> StagedFile:
        """Return the description of the file for the commit."""
        queues = [(*queue, self._counts[number]) for queue, number in self._numbers.items()]
        return StagedFile(name, self._size, self._rows, queues)

    def add(self, laid: Laid) -> None:
        """Write all rows of a batch."""
        numbers = np.array([self._number(queue) for queue in laid.queues], np.int32)
        next_offsets = laid.routes.queues["next_offset"]
        next_offsets[:] = [self._counts[number] for number in numbers.tolist()]
        rows, first = laid.drafts.rows, 0
        while first < len(rows):
            reached, end = write_records(
                self._scratch,
                0,
                len(self._scratch),
                0,
                laid.drafts,
                first,
                laid.routes,
                0,
                self._kernel,
                append_crc=self._append_crc,
            )
            if reached == first:
                self._make_room(rows[first])
                continue
            self._write(rows[first:reached], numbers, laid, end)
            first = reached
        for number, count in zip(numbers.tolist(), next_offsets.tolist(), strict=True):
            self._counts[number] = count

    def _number(self, queue: tuple[str, int]) -> int:
        number = self._numbers.setdefault(queue, len(self._numbers))
        if number == len(self._counts):
            self._counts.append(0)
        return number

    def _make_room(self, row: Any) -> None:
        size = int(row["body_length"]) + int(row["properties_length"]) + _MOST_BESIDES
        if len(self._scratch) >= self._largest:
            raise FormatError(
                f"a message of about {size} bytes does not fit into one file of the commit log"
            )
        self._scratch = np.empty(min(self._largest, 2 * size), np.uint8)

    def _write(self, rows: Any, numbers: Any, laid: Laid, end: int) -> None:
        if (rows["size"] > self._largest).any():
            size = int(rows["size"].max())
            raise FormatError(f"{size} bytes do not fit into one file of the commit log")
        staged = np.zeros(len(rows), STAGED)
        staged["queue_offset"], staged["size"] = rows["queue_offset"], rows["size"]
        kinds = rows["sys_flag"] & sys_flag.TRANSACTION_MASK
        is_queued = np.isin(kinds, (sys_flag.TRANSACTION_NONE, sys_flag.TRANSACTION_COMMIT))
        staged["queue"] = np.where(is_queued, numbers[rows["queue"]], -1)
        is_v6 = laid.routes.hosts["part_length"][rows["host"]] == V6_SIZE
        staged["store_timestamp_at"] = record.BORN_HOST_AT + np.where(is_v6, V6_SIZE, V4_SIZE)
        self._size += write_frame(self._file, Frame(staged, self._scratch[:end]))
        self._rows += len(rows)


_MOST_BESIDES = record.HEAD_SIZES[-1] + 4 + 255 + 1 + record_crc.SIZE
