"""Find the damage in a stretch of the log, and write it to files of dead letters (tasks)."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.errors import StoreError
from mqlake.formats.record import FAULT_REASONS
from mqlake.lake.files.data_file import DataFile
from mqlake.lake.files.letters import COLUMNS, DAMAGE, DELETED, without_record
from mqlake.lake.files.partition_writer import Shapes, write_all
from mqlake.lake.tables.evolution import table_schema
from mqlake.query.reading.directory import open_location
from mqlake.query.store.access.stretches import SegmentStretch, Stretch, common
from mqlake.query.store.plan import StoreTask
from mqlake.storage.protocol import Directory

CHUNK = 1 << 20
"""Maximum bytes of the log in one dead letter."""

Found = tuple[int, int, str, str, bytes | None]
"""Physical offset, length, kind, reason, bytes."""


class Lost(msgspec.Struct, frozen=True):
    """A stretch [start, end) that is in no file."""

    start: int
    end: int


class DamageJob(msgspec.Struct, frozen=True):
    """The part of the log that one task checks.

    Attributes:
        shape: of the files of dead letters; None to say only whether there are any.
        found: when, in ms since 1970.
        unread: what the batch had to skip; None if that is not known. Only of that, a part of the
            log that is deleted by now is lost.
    """

    task: StoreTask
    shape: Shapes | None
    found: int
    unread: tuple[Stretch, ...] | None = None


class Damaged(msgspec.Struct, frozen=True):
    """The damage that a task found, and the files that it wrote."""

    is_damaged: bool
    files: list[DataFile]


def write_damage(job: DamageJob) -> Damaged:
    """Look for bytes that are no good record; write them if there is a shape."""
    found = damage_of(job.task, job.unread)
    if job.shape is None:
        return Damaged(next(found, None) is not None, [])
    files = write_all(job.shape, _batches(found, job.found))
    return Damaged(bool(files), files)


def write_lost(lost: Sequence[Lost], shape: Shapes, found: int) -> list[DataFile]:
    """Write dead letters of stretches that were deleted before they were read."""
    reason = "the log was deleted before it was read"
    each = ((one.start, one.end - one.start, DELETED, reason, None) for one in lost)
    return write_all(shape, _batches(each, found))


def _batches(found: Iterator[Found], at: int) -> Iterator[Any]:
    schema = table_schema(COLUMNS)
    names = ("physicalOffset", "length", "kind", "reason", "raw")
    for one in found:
        yield without_record(schema, [dict(zip(names, one, strict=True)) | {"found": at}])


def damage_of(task: StoreTask, unread: tuple[Stretch, ...] | None = None) -> Iterator[Found]:
    """Yield the stretches of a task without a good record, in chunks."""
    directory = open_location(task.location)
    for piece in task.pieces:
        yield from _of_piece(directory, piece, unread)


def _of_piece(
    directory: Directory, piece: SegmentStretch, unread: tuple[Stretch, ...] | None
) -> Iterator[Found]:
    try:
        file = directory.open(piece.path)
    except StoreError as error:
        whole = [(piece.start, piece.end)]
        for start, end in whole if unread is None else common(whole, unread):
            yield start, end - start, DELETED, f"not read: {error}", None
        return
    try:
        scan = SegmentScan(
            file,
            piece.base,
            piece.start,
            piece.end,
            exact=True,
            want=Want.LOCATE,
            limit=piece.end,
        )
        seen = 0
        for _ in scan:
            for gap in scan.gaps[seen:-1]:  # The last one may still grow.
                yield from _chunks(file, piece, gap.physical_offset, gap.length, gap.fault)
            seen = max(seen, len(scan.gaps) - 1)
        for gap in scan.gaps[seen:]:
            yield from _chunks(file, piece, gap.physical_offset, gap.length, gap.fault)
        if scan.stop < piece.end:
            reason = "the file has become shorter"
            yield scan.stop, piece.end - scan.stop, DELETED, reason, None
    finally:
        file.close()


def _chunks(
    file: Any, piece: SegmentStretch, offset: int, length: int, fault: Any
) -> Iterator[Found]:
    for at in range(offset, offset + length, CHUNK):
        size = min(CHUNK, offset + length - at)
        raw = file.read(at - piece.base, size)
        yield at, size, DAMAGE, FAULT_REASONS[fault], raw
