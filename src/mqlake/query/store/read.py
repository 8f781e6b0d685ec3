"""Read the messages of one task as Arrow batches."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mqlake.dispatch.batch import Batch
from mqlake.dispatch.gap import Gap
from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.dispatch.window import DEFAULT_WINDOW
from mqlake.errors import StoreError
from mqlake.formats.record import FAULT_REASONS
from mqlake.jobs.bodies.inner_batches import split
from mqlake.jobs.bodies.plain_bodies import StoredBodies
from mqlake.query.reading.compilation import tell_compilation
from mqlake.query.reading.directory import open_location
from mqlake.query.reading.joining import put_together
from mqlake.query.reading.log import logger
from mqlake.query.reading.memory import keep_freed_memory
from mqlake.query.store.access.stretches import SegmentStretch, Stretch, join
from mqlake.query.store.columns import to_batches
from mqlake.query.store.plan import StoreTask
from mqlake.query.store.row_filter import RowFilter
from mqlake.storage.protocol import Directory

log = logger()

WINDOW = DEFAULT_WINDOW
"""Bytes of log in one batch.

Larger batches would not fit into the CPU's cache while they are built, which costs more than Spark
gains.
"""


def read(task: StoreTask, schema: Any, unread: list[Stretch] | None = None) -> Iterator[Any]:
    """Yield the messages of a task as `pyarrow.RecordBatch`es of an Arrow schema.

    Args:
        unread: gets the parts of the log that have no message, or were deleted, at the end.

    Raises:
        StoreError: damage, or a deleted file, unless that is tolerated.
    """
    keep_freed_memory()
    tell_compilation(log.warning)
    losses = _StoreLosses(task)
    row_filter = RowFilter(task.selection)
    directory = open_location(task.location)
    stored = StoredBodies() if task.decompress else None
    made = (
        rows
        for piece in task.pieces
        for batch in _scan(directory, piece, row_filter.want, losses)
        for part in (split(batch) if task.decompress else (batch,))
        if len((chosen := row_filter.choose(part)).records)
        for rows in to_batches(chosen, schema, task.broker_name, stored)
    )
    yield from put_together(made)
    losses.report()
    if stored is not None:
        stored.report(lambda what: log.warning("%s: %s", task.store, what))
    if row_filter.dead:
        log.info("%s: left out %d messages of deleted topics", task.store, row_filter.dead)
    if unread is not None:
        unread += losses.unread


def _scan(
    directory: Directory, piece: SegmentStretch, want: Want, losses: _StoreLosses
) -> Iterator[Batch]:
    try:
        file = directory.open(piece.path)
    except StoreError as error:
        losses.deleted(piece, error)
        return
    try:
        scan = SegmentScan(
            file,
            piece.base,
            piece.start,
            piece.end,
            exact=True,
            want=want,
            limit=piece.end,
            window=_window(piece.end - piece.start),
        )
        for batch in scan:
            losses.damaged(piece, scan.gaps)
            yield batch
        losses.damaged(piece, scan.gaps)
        if scan.stop < piece.end:
            losses.cut(piece, scan.stop)
    finally:
        file.close()


def _window(length: int) -> int:
    """Return the window for a piece: one of a few sizes, because buffers are kept by size."""
    return min(WINDOW, 1 << max(16, (length - 1).bit_length()))


class _StoreLosses:
    """What a task could not read: it raises an error, or is counted and logged."""

    def __init__(self, task: StoreTask) -> None:
        self._task = task
        self._seen: dict[tuple[int, int], int] = {}
        self._bytes = 0
        self._first = ""
        self._gaps: dict[int, int] = {}

    def damaged(self, piece: SegmentStretch, gaps: list[Gap]) -> None:
        """Report the findings of a scan; gaps that were reported before count once."""
        seen = self._seen.get((piece.base, piece.start), 0)
        self._seen[piece.base, piece.start] = len(gaps)
        for gap in gaps[max(0, seen - 1) :]:  # the last one may have grown
            self._gaps[gap.physical_offset] = gap.length
        for gap in gaps[seen:]:
            offset = gap.physical_offset
            self._lost(piece, offset, gap.length, FAULT_REASONS[gap.fault])

    def deleted(self, piece: SegmentStretch, error: StoreError) -> None:
        """Report a file that no longer exists."""
        self._lost(piece, piece.start, piece.end - piece.start, f"not read: {error}")

    def cut(self, piece: SegmentStretch, stop: int) -> None:
        """Report a file that has become shorter."""
        self._lost(piece, stop, piece.end - stop, "the file has become shorter")

    def _lost(self, piece: SegmentStretch, offset: int, length: int, reason: str) -> None:
        what = f"{self._task.store}/{piece.path}: {length} bytes at {offset - piece.base}: {reason}"
        if self._task.fail_on_data_loss:
            raise StoreError(f"{what}; set failOnDataLoss to false to skip the damage")
        self._first = self._first or what
        self._bytes += length
        self._gaps.setdefault(offset, length)

    @property
    def unread(self) -> list[Stretch]:
        """What was skipped."""
        return join((offset, offset + length) for offset, length in self._gaps.items())

    def report(self) -> None:
        """Log what was skipped."""
        if self._first:
            places = sum(self._seen.values()) or 1
            log.warning(
                "skipped damage in %d places, %d bytes; the first: %s",
                places,
                self._bytes,
                self._first,
            )
