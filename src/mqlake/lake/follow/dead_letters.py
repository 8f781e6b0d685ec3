"""Dead letters: damaged stretches of the log, and rows that the table refuses.

They are stored in a separate table, `<table>_dead_letters`, with reason, position and raw bytes. It
is created with the first of them. A batch's dead letters are committed before its rows, all with
the batch's number, so each is stored exactly once even if the process is killed in between. Damage
and refused rows are committed separately: when a batch is repeated, the table may refuse rows that
it did not refuse before, because `follow` was started with other columns.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec

from mqlake.jobs.engine import Engine
from mqlake.lake.files.data_file import DataFile
from mqlake.lake.files.letters import COLUMNS
from mqlake.lake.files.partition_writer import Shapes
from mqlake.lake.follow.damage import DamageJob, Lost, write_damage, write_lost
from mqlake.lake.follow.log_positions import read_options_of
from mqlake.lake.options import PARTITIONS, STATE, FollowOptions, Format
from mqlake.lake.tables.opening import open_table, table_exists
from mqlake.lake.tables.table import LakeTable
from mqlake.query.store.access import stretches
from mqlake.query.store.access.boundaries import Boundaries
from mqlake.query.store.access.stretches import Stretch
from mqlake.query.store.place import open_store
from mqlake.query.store.plan import plan_tasks
from mqlake.query.store.position import StorePosition
from mqlake.storage.clock import SystemClock

SUFFIX = "_dead_letters"
NEEDED = ("queueId", "queueOffset", "physicalOffset", "size")
"""Columns of a row that are needed to find its record again."""


def options_of(options: FollowOptions) -> FollowOptions:
    """Return the options of the table of dead letters beside a table."""
    catalog = options.catalog
    if options.format is Format.ICEBERG and catalog is None and options.url is None:
        catalog = f"sqlite:///{options.out / STATE / 'catalog.db'}"
    return msgspec.structs.replace(
        options,
        out=options.out.with_name(options.out.name + SUFFIX),
        url=options.url and options.url + SUFFIX,
        table=options.table and options.table + SUFFIX,
        catalog=catalog,
        columns=COLUMNS,
        publish_after=0.0,
        is_per_topic=False,
        partition_by=PARTITIONS,
        upsert_by=None,
        body=None,
        body_fields=None,
    )


class DeadLetterTable:
    """The table of dead letters of a follower."""

    def __init__(self, options: FollowOptions, engine: Engine, follower: str) -> None:
        self._options, self._engine, self._follower = options, engine, follower
        self._refused = f"{follower}-refused"
        self._own = options_of(options)

    @property
    def store(self) -> str:
        """The store whose messages these are."""
        return str(self._options.store)

    @property
    def exists(self) -> bool:
        """Whether there has been a dead letter."""
        return "table" in self.__dict__ or table_exists(self._own)

    @cached_property
    def table(self) -> LakeTable:
        """The table, created if it is missing."""
        return open_table(self._own)

    def has(self, batch: int) -> bool:
        """Return whether the damage of a batch is committed."""
        return self._has(self._follower, batch)

    def _has(self, follower: str, batch: int) -> bool:
        return self.exists and batch <= self.table.last_batch(follower)

    def take_damage(
        self,
        batch: int,
        start: StorePosition,
        end: StorePosition,
        unread: Sequence[Stretch] | None = None,
    ) -> int:
        """Note each stretch of a batch without a good record; return how many there are.

        Args:
            unread: what the batch had to skip; None if that is not known.
        """
        if self.has(batch):
            return 0
        lost, jobs = self._plan((start, end), unread)
        found = self._engine.run(write_damage, jobs, "look for damage") if jobs else []
        if not lost and not any(one.is_damaged for one in found):
            return 0
        lost, jobs = self._plan((start, end), unread)
        shape = self.table.shape(self._follower, batch)
        files = self._write_damage(shape, lost, jobs)
        self.table.commit(self._follower, batch, files)
        return sum(file.rows for file in files)

    def _write_damage(
        self, shape: Shapes, lost: list[Lost], jobs: list[DamageJob]
    ) -> list[DataFile]:
        jobs = [msgspec.structs.replace(job, shape=shape) for job in jobs]
        written = self._engine.run(write_damage, jobs, "write damage") if jobs else []
        return write_lost(lost, shape, _now()) + [file for one in written for file in one.files]

    def refused_shape(self, batch: int) -> Shapes | None:
        """Return the form of files with refused rows of a batch; None if they are committed."""
        if self._has(self._refused, batch):
            return None
        return self.table.shape(self._follower, batch)

    def add_refused(self, batch: int, files: Sequence[DataFile]) -> None:
        """Add files with the refused rows of a batch."""
        if files:
            self.table.commit(self._refused, batch, files)

    def compact(self, *, is_last: bool) -> None:
        """Publish waiting files, if the table's format lets files wait."""
        if self.exists and self._own.format is Format.PARQUET:
            from mqlake.lake.files.compaction import merge

            self.table.replace([merge(job) for job in self.table.merges(is_last=is_last)])

    def _plan(
        self, stretch: tuple[StorePosition, StorePosition], unread: Sequence[Stretch] | None
    ) -> tuple[list[Lost], list[DamageJob]]:
        first, last = (position.physical_offset for position in stretch)
        options = read_options_of(self._options)
        with open_store(options.location) as store:
            absent = stretches.missing(store.log, [(first, last)])
            gone = absent if unread is None else stretches.common(absent, unread)
            lost = [Lost(*one) for one in gone]
            begin = max(first, store.log.min_offset)
            if begin >= last:
                return lost, []
            tasks = plan_tasks(store, Boundaries(store, last), options, (), [(begin, last)])
        skipped = None if unread is None else tuple(unread)
        return lost, [DamageJob(task, None, _now(), skipped) for task in tasks]


def _now() -> int:
    return SystemClock().milliseconds()
