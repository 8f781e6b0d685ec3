"""The file that a task stages for the commit: records that lack only their position.

A sequence of frames: a header, a row of STAGED for each record, and the records. Everything in a
record is final except queue offset, physical offset and store timestamp, and therefore the record's
CRC.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import BinaryIO, NamedTuple

import msgspec
import numpy as np

from mqlake.dispatch.batch import Bytes
from mqlake.dispatch.drafts import Rows
from mqlake.errors import StoreError

STAGED = np.dtype(
    [
        ("queue_offset", "i8"),  # counted from the task's first message of the queue
        ("size", "i4"),
        ("queue", "i4"),  # number in StagedFile.queues; -1: in no queue (PREPARED, ROLLBACK)
        ("store_timestamp_at", "i4"),  # position in the record
        ("reserved", "i4"),
    ]
)

_HEAD = Struct("<II")


class StagedFile(msgspec.Struct, frozen=True):
    """The description of a staged file for the commit.

    Attributes:
        name: the file's name, in the directory of the write.
        size: the file's size, in bytes.
        queues: topic, queue id and number of queued messages.
    """

    name: str
    size: int
    rows: int
    queues: list[tuple[str, int, int]]


class Frame(NamedTuple):
    """A group of records: rows of STAGED, and the bytes, which may be changed."""

    rows: Rows
    data: Bytes


def write_frame(file: BinaryIO, frame: Frame) -> int:
    """Write a frame; return its bytes."""
    head = _HEAD.pack(len(frame.rows), len(frame.data))
    file.writelines((head, frame.rows.data, frame.data.data))
    return len(head) + frame.rows.nbytes + len(frame.data)


def read_frames(directory: Path, part: StagedFile) -> Iterator[Frame]:
    """Yield the frames of a staged file.

    Raises:
        StoreError: the file is missing, or not as it was written.
    """
    path = directory / part.name
    try:
        with path.open("rb", buffering=0) as file:
            left = part.size
            while left > 0:
                count, size = _HEAD.unpack(_read(file, _HEAD.size))
                left -= _HEAD.size + count * STAGED.itemsize + size
                rows = np.frombuffer(_read(file, count * STAGED.itemsize), STAGED)
                yield Frame(rows, np.frombuffer(_read(file, size), np.uint8))
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or "the file is not as a task wrote it"
        raise StoreError(f"{path}: {reason}; all hosts must see the same directory") from None


def _read(file: BinaryIO, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = file.readinto(view)  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        view = view[count:]
    return data
