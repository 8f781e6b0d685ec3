"""Write one micro-batch to a table, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from mqlake.jobs.engine import Engine
from mqlake.lake.files.compaction import merge
from mqlake.lake.files.data_file import DataFile
from mqlake.lake.files.partition_writer import Shapes, WrittenFiles, write_counted
from mqlake.lake.follow.dead_letters import DeadLetterTable
from mqlake.lake.follow.log_positions import LogPositions
from mqlake.lake.follow.log_writing import LogWriting
from mqlake.lake.follow.upserts import Upserting
from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.lake.tables.evolution import SchemaConflictError, UnwritableTableError
from mqlake.lake.tables.table import LakeTable
from mqlake.query.store.access.stretches import join
from mqlake.query.store.position import StorePosition
from mqlake.spark.follow.newest_rows import keys_of, newest, to_write
from mqlake.spark.follow.refusals import DividedRows, refusal_of, set_aside
from mqlake.spark.follow.row_writing import write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


LATEST = 2
"""Small files are merged before the next batch, as a multiple of the number of batches after which
they are merged while no batch waits."""


class FollowTotals(msgspec.Struct):
    """What was done since the start."""

    batches: int = 0
    messages: int = 0
    files: int = 0
    bytes_written: int = 0
    files_merged: int = 0
    dead_letters: int = 0


class MicroBatches:
    """Processes a query's micro-batches, in order, for a table.

    Spark repeats a batch, with the same rows, unless it recorded that the batch was done. The
    table knows which batches it has: it got the files and the batch's number atomically.

    Args:
        compact_every: batches after which `is_merge_due`; twice as many are merged by `take`.
        log: writes the messages of a batch, if the table's columns are the source's.
    """

    def __init__(
        self,
        *,
        table: LakeTable,
        engine: Engine,
        follower: str,
        compact_every: int,
        positions: LogPositions,
        dead_letters: DeadLetterTable | None,
        log: LogWriting | None,
        upserting: Upserting | None = None,
        totals: FollowTotals | None = None,
    ) -> None:
        self.totals = FollowTotals() if totals is None else totals
        self._table, self._engine, self._follower = table, engine, follower
        self._compact_every = compact_every
        self._positions, self._dead_letters = positions, dead_letters
        self._log, self._upserting = log, upserting
        self._since_merge = 0

    def take(self, rows: DataFrame, number: int) -> None:
        """Write and commit a batch, unless the table has it."""
        if number <= self._table.last_batch(self._follower):
            return
        stretch = self._positions.stretch(number)
        try:
            shape = self._table.shape(self._follower, number)
        except SchemaConflictError as error:
            if self._dead_letters is None:
                raise
            self.totals.dead_letters += set_aside(self._dead_letters, number, rows, str(error))
            self._note_damage(number, stretch, None)
            if not isinstance(error, UnwritableTableError):
                self._commit(number, [])
            return
        is_noted = False
        refusal = refusal_of(rows, shape)
        if refusal is not None:
            rows = self._set_refused_aside(number, refusal)
            self._note_damage(number, stretch, None)
            is_noted = True
        removed: list[DataFile] = []
        anew: list[DataFile] = []
        if self._upserting is None:
            written = self._write(rows, shape, None if is_noted else stretch)
        else:
            found = newest(rows, self._upserting.column).persist()
            try:
                written = write_rows(to_write(found), shape, write_counted)
                anew, removed = self._upserting.replaced(self._table, keys_of(found))
            finally:
                found.unpersist()
        files = [file for one in written for file in one.files]
        is_noted = is_noted or self._note_damage(number, stretch, written)
        if not files and not removed and not is_noted:
            return
        self._commit(number, [*files, *anew], removed)
        self.totals.batches += 1
        self.totals.messages += sum(file.rows for file in files)
        self.totals.files += len(files)
        self.totals.bytes_written += sum(file.size for file in files)
        self._since_merge += 1
        if self._compact_every and self._since_merge >= self._compact_every * LATEST:
            self.compact()

    @property
    def is_merge_due(self) -> bool:
        """Whether enough batches were written since the last look for small files."""
        return 0 < self._compact_every <= self._since_merge

    def _write(
        self, rows: DataFrame, shape: Shapes, stretch: tuple[StorePosition, StorePosition] | None
    ) -> list[WrittenFiles]:
        """Write rows; if they are all messages of a stretch, the writing tasks read them."""
        if self._log is None or stretch is None:
            return write_rows(rows, shape, write_counted)
        return self._log.write(stretch, shape)

    def _set_refused_aside(self, number: int, refusal: DividedRows) -> DataFrame:
        """Store rows that their tables refuse as dead letters; return the other rows."""
        if self._dead_letters is not None:
            self.totals.dead_letters += set_aside(
                self._dead_letters, number, refusal.refused, refusal.reason
            )
        elif not refusal.refused.isEmpty():
            raise SchemaConflictError(refusal.reason)
        return refusal.taken

    def _commit(self, number: int, files: list[DataFile], removed: Sequence[DataFile] = ()) -> None:
        found = self._positions.end_of(number)
        end = found and CommittedEnd(found.physical_offset, found.fingerprint, number)
        self._table.commit(self._follower, number, files, removed, end)

    def _note_damage(
        self,
        number: int,
        stretch: tuple[StorePosition, StorePosition] | None,
        written: Sequence[WrittenFiles] | None,
    ) -> bool:
        """Store the damage in a batch's stretch of the log; return whether there is any.

        If tasks read the log themselves, they tell what they had to skip. Else, if the rows'
        records fill the stretch, there is nothing to look for.
        """
        if self._dead_letters is None or stretch is None:
            return False
        start, end = stretch
        unread = None
        if written is not None and self._log is not None:
            unread = join(one for task in written for one in task.unread)
            if not unread:
                return False
        elif written is not None:
            log_bytes = sum(one.log_bytes for one in written)
            if log_bytes == end.physical_offset - start.physical_offset:
                return False
        self.totals.dead_letters += self._dead_letters.take_damage(number, start, end, unread)
        return self._dead_letters.has(number)

    def expire(self, keep: float) -> None:
        """Expire versions older than `keep` seconds, of the table and of its dead letters."""
        self._table.expire(keep)
        if self._dead_letters is not None and self._dead_letters.exists:
            self._dead_letters.table.expire(keep)

    def compact(self, *, is_last: bool = False) -> None:
        """Merge small files, in one task per merge, and replace them atomically."""
        self._since_merge = 0
        if self._dead_letters is not None:
            self._dead_letters.compact(is_last=is_last)
        jobs = self._table.merges(is_last=is_last)
        if not jobs:
            return
        merged = self._engine.run(merge, jobs, "merge small files")
        self._table.replace(merged)
        self.totals.files_merged += sum(
            len(one.inputs) for one in merged if one.inputs != one.outputs
        )
