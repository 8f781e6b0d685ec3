"""Bring one micro-batch into a table, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mqlake.jobs.engine import Engine
from mqlake.spark.follow import partition_writer
from mqlake.spark.follow.committed_end import CommittedEnd
from mqlake.spark.follow.compaction import merge
from mqlake.spark.follow.data_file import DataFile
from mqlake.spark.follow.dead_letters import DeadLetters
from mqlake.spark.follow.evolution import SchemaConflictError
from mqlake.spark.follow.log_positions import LogPositions
from mqlake.spark.follow.partition_writer import Shapes, Written
from mqlake.spark.follow.table import LakeTable
from mqlake.spark.follow.topic_shapes import TopicShapes
from mqlake.spark.follow.upserts import Upserting, to_write
from mqlake.spark.source.position import Position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Totals(msgspec.Struct):
    """What was done since the start."""

    batches: int = 0
    messages: int = 0
    files: int = 0
    bytes_written: int = 0
    files_merged: int = 0
    dead_letters: int = 0


class MicroBatches:
    """Take a query's micro-batches, in order, for a table.

    Spark runs a batch again, with the same rows, unless it noted that the batch was done. The table
    says which ones it has: it got the files and the batch's number in one step.
    """

    def __init__(
        self,
        table: LakeTable,
        engine: Engine,
        follower: str,
        compact_every: int,
        positions: LogPositions,
        dead_letters: DeadLetters | None,
        upserting: Upserting | None = None,
    ) -> None:
        self.totals = Totals()
        self._table, self._engine, self._follower = table, engine, follower
        self._compact_every = compact_every
        self._positions, self._dead_letters = positions, dead_letters
        self._upserting = upserting
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
            self.totals.dead_letters += self._dead_letters.set_aside(
                number, rows, str(error), stretch
            )
            self._commit(number, [])
            return
        is_noted = False
        if isinstance(shape, TopicShapes) and shape.refused:
            rows = self._set_refused_aside(number, rows, shape.refused, stretch)
            is_noted = True
        removed: list[DataFile] = []
        anew: list[DataFile] = []
        if self._upserting is None:
            written = _write(rows, shape)
        else:
            found = self._upserting.newest(rows)
            try:
                written = _write(to_write(found), shape)
                anew, removed = self._upserting.replaced(self._table, found)
            finally:
                found.unpersist()
        files = [file for one in written for file in one.files]
        is_noted = is_noted or self._note_damage(
            number, stretch, sum(one.log_bytes for one in written)
        )
        if not files and not removed and not is_noted:
            return
        self._commit(number, [*files, *anew], removed)
        self.totals.batches += 1
        self.totals.messages += sum(file.rows for file in files)
        self.totals.files += len(files)
        self.totals.bytes_written += sum(file.size for file in files)
        self._since_merge += 1
        if self._compact_every and self._since_merge >= self._compact_every:
            self.compact()

    def _set_refused_aside(
        self,
        number: int,
        rows: DataFrame,
        refused: dict[str, str],
        stretch: tuple[Position, Position] | None,
    ) -> DataFrame:
        """Note rows of topics whose tables refuse them, and damage; return the other rows."""
        from pyspark.sql import functions as sql

        reason = "; ".join(refused.values())
        if self._dead_letters is None:
            raise SchemaConflictError(reason)
        is_refused = sql.col("topic").isin(list(refused))
        self.totals.dead_letters += self._dead_letters.set_aside(
            number, rows.where(is_refused), reason, stretch
        )
        return rows.where(~is_refused)

    def _commit(self, number: int, files: list[DataFile], removed: Sequence[DataFile] = ()) -> None:
        found = self._positions.end_of(number)
        end = found and CommittedEnd(found.physical_offset, found.fingerprint)
        self._table.commit(self._follower, number, files, removed, end)

    def _note_damage(
        self, number: int, stretch: tuple[Position, Position] | None, log_bytes: int | None
    ) -> bool:
        """Note what of a batch's stretch of log is no record; return whether anything is noted.

        If the rows' records fill the stretch, there is nothing to look for.
        """
        if self._dead_letters is None or stretch is None:
            return False
        start, end = stretch
        if log_bytes == end.physical_offset - start.physical_offset:
            return False
        self.totals.dead_letters += self._dead_letters.take_damage(number, start, end)
        return self._dead_letters.has(number)

    def expire(self, keep: float) -> None:
        """Forget versions older than `keep` seconds, of the table and of its dead letters."""
        self._table.expire(keep)
        if self._dead_letters is not None and self._dead_letters.exists:
            self._dead_letters.table.expire(keep)

    def compact(self, *, is_last: bool = False) -> None:
        """Merge small files, a task each, and replace them in one step."""
        self._since_merge = 0
        jobs = self._table.merges(is_last=is_last)
        if not jobs:
            return
        merged = self._engine.run(merge, jobs, "merge small files")
        self._table.replace(merged)
        if self._dead_letters is not None:
            self._dead_letters.compact(is_last=is_last)
        self.totals.files_merged += sum(
            len(one.inputs) for one in merged if one.inputs != one.outputs
        )


def _write(rows: DataFrame, shape: Shapes) -> list[Written]:
    """Write rows in tasks; return what each wrote."""
    frame: Any = rows
    made = frame.mapInArrow(partition_writer.task(shape), partition_writer.RESULT).collect()
    return [msgspec.json.decode(row.written, type=Written) for row in made]
