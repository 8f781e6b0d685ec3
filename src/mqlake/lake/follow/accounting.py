"""Compare a table with the logs that it follows: its rows and the dead letters are the records.

The logs are counted by a separate scan, and the rows are read as any reader of the table reads
them. So the comparison does not depend on notes of `follow`, except where the newest batch ends in
the log.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from mqlake.errors import JobError
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.engine import Engine
from mqlake.lake.files.letters import DELETED, REFUSED, messages
from mqlake.lake.follow.damage import damage_of
from mqlake.lake.follow.dead_letters import options_of
from mqlake.lake.follow.digest import COUNTED, TableDigest, digest
from mqlake.lake.follow.log_positions import LogPositions, read_options_of
from mqlake.lake.followers.identity import CheckpointIdentity, alone, followers_of, known_followers
from mqlake.lake.followers.kept_choices import is_plain, stated_source
from mqlake.lake.options import FollowOptions, StoreQuery
from mqlake.lake.tables.evolution import table_schema
from mqlake.lake.tables.opening import open_table, table_exists
from mqlake.lake.tables.table import LakeTable
from mqlake.query.store.access.boundaries import Boundaries
from mqlake.query.store.offsets import subscription
from mqlake.query.store.place import open_store
from mqlake.query.store.plan import StoreTask, plan_tasks
from mqlake.query.store.read import read

POSITION = "physicalOffset"


class CheckReport(msgspec.Struct, frozen=True, rename="camel"):
    """The comparison of a table with the logs that it follows.

    Attributes:
        records: of the logs, as far as the table has read and the logs still have.
        rows: of the table, for that part of the logs.
        refused: messages among the dead letters, for that part of the logs.
        older: rows of the table whose part of the log was deleted since.
        damaged_bytes: bytes of the logs that are not a record.
        damaged_bytes_noted: such bytes among the dead letters.
        columns: the columns that the checksums cover.
    """

    output: str
    records: TableDigest
    rows: TableDigest
    refused: TableDigest
    older: int
    damaged_bytes: int
    damaged_bytes_noted: int
    columns: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the table has each record exactly once, and all damage is noted."""
        return (
            self.records == self.rows + self.refused
            and self.damaged_bytes == self.damaged_bytes_noted
        )


class _ComparedRange(msgspec.Struct, frozen=True):
    """The part of a log that is compared: physical offsets [start, end)."""

    start: int
    end: int


class _CountJob(msgspec.Struct, frozen=True):
    task: StoreTask
    columns: tuple[str, ...]


class _CountedRows(msgspec.Struct, frozen=True):
    records: TableDigest
    damaged: int


@reports_disk_faults
def check(options: FollowOptions, engine: Engine) -> CheckReport:
    """Compare the table of `options` with the logs of all stores that it follows.

    Raises:
        JobError: the table does not exist, or lacks what the comparison needs.
    """
    if options.upsert_by is not None or any(
        one.upsert_by for one in followers_of(str(options.out)).values()
    ):
        raise JobError(
            f"{options.out}: a table with --upsert-by has the newest messages of keys, not all of "
            "them: there is nothing to compare with the log"
        )
    followers = known_followers(options)
    if not followers:
        raise JobError(
            f"{options.place}: nothing has been followed into this table: run follow without "
            "--check first"
        )
    with alone(options):
        return _check(options, engine, followers)


def _check(
    options: FollowOptions, engine: Engine, followers: list[tuple[Path, CheckpointIdentity]]
) -> CheckReport:
    table = open_table(options)
    there = table.column_names()
    columns = tuple(name for name in COUNTED if name in there)
    records, damaged = TableDigest(), 0
    stretches: list[_ComparedRange] = []
    for checkpoint, identity in followers:
        query = StoreQuery(
            store=Path(identity.store),
            checkpoint=checkpoint,
            source=stated_source(identity.source),
        )
        stretch, jobs = _jobs(query, identity, table, columns)
        stretches.append(stretch)
        for one in engine.run(_count, jobs, "count the log's records") if jobs else []:
            records, damaged = records + one.records, damaged + one.damaged
    whole = _whole(options, stretches, there)
    rows, older = _count_rows(table, columns, whole)
    decompress = all(is_plain(identity.source) for _, identity in followers)
    refused, noted = _count_letters(options, columns, whole, decompress=decompress)
    return CheckReport(
        output=options.place,
        records=records,
        rows=rows,
        refused=refused,
        older=older,
        damaged_bytes=damaged,
        damaged_bytes_noted=noted,
        columns=columns,
    )


def _jobs(
    query: StoreQuery, identity: CheckpointIdentity, table: LakeTable, columns: tuple[str, ...]
) -> tuple[_ComparedRange, list[_CountJob]]:
    positions = LogPositions(query.store, query.checkpoint, identity.begin)
    begin, end = positions.begin, positions.end_of(table.last_batch(identity.id))
    if begin is None or end is None:
        raise JobError(f"{query.checkpoint}: does not say which part of the log the table has")
    options = read_options_of(query)
    with open_store(options.location) as store:
        start = max(begin.physical_offset, store.log.min_offset)
        stretch = _ComparedRange(start, max(start, end.physical_offset))
        if start >= stretch.end:
            return stretch, []
        selection = (*subscription(options), *begin.selection)
        boundaries = Boundaries(store, stretch.end)
        tasks = plan_tasks(store, boundaries, options, selection, [(start, stretch.end)])
    was_cut = start > begin.physical_offset
    return (
        _ComparedRange(start if was_cut else -1, stretch.end),
        [_CountJob(task, columns) for task in tasks],
    )


def _whole(
    options: FollowOptions, stretches: list[_ComparedRange], columns: list[str]
) -> _ComparedRange | None:
    """Return the stretch to which rows are limited by physical offset; None to count all rows."""
    if len(stretches) == 1 and POSITION in columns:
        return stretches[0]
    if any(one.start >= 0 for one in stretches):
        raise JobError(
            f"{options.place}: a log begins later than when it was followed, and the rows do not "
            f"say which part of it they are: this needs one store and the column {POSITION}"
        )
    return None


def _count(job: _CountJob) -> _CountedRows:
    """Return the digest of the records of a task, and the number of bytes that are not a record."""
    found = TableDigest()
    for batch in read(job.task, table_schema(job.columns)):
        found += digest(batch, job.columns)
    return _CountedRows(found, sum(length for _, length, *_ in damage_of(job.task)))


def _count_rows(
    table: LakeTable, columns: tuple[str, ...], stretch: _ComparedRange | None
) -> tuple[TableDigest, int]:
    found, older = TableDigest(), 0
    for batch in table.scan(columns):
        wanted, before = _within(batch, stretch)
        found, older = found + digest(wanted, columns), older + before
    return found, older


def _within(batch: Any, stretch: _ComparedRange | None) -> tuple[Any, int]:
    """Return the rows of a stretch, and how many are before it."""
    if stretch is None:
        return batch, 0
    offsets = batch.column(POSITION).to_numpy(zero_copy_only=False)
    mask = (offsets >= stretch.start) & (offsets < stretch.end)
    return batch.filter(pa.array(mask)), int((offsets < stretch.start).sum())


def _count_letters(
    options: FollowOptions,
    columns: tuple[str, ...],
    stretch: _ComparedRange | None,
    *,
    decompress: bool,
) -> tuple[TableDigest, int]:
    own = options_of(options)
    if not table_exists(own):
        return TableDigest(), 0
    schema = table_schema(columns)
    found, damaged = TableDigest(), 0
    for kind, offset, length, raw, queue_offset in _letters(open_table(own)):
        if stretch is not None and not stretch.start <= offset < stretch.end:
            continue
        if kind == REFUSED:
            rows = messages(raw, offset, schema, decompress=decompress, queue_offset=queue_offset)
            found += digest(rows, columns)
        elif kind != DELETED:
            damaged += length
    return found, damaged


def _letters(table: LakeTable) -> Iterator[tuple[str, int, int, bytes, int]]:
    for batch in table.scan(("kind", POSITION, "length", "raw", "queueOffset")):
        columns: Iterable[Any] = (column.to_pylist() for column in batch.columns)
        yield from zip(*columns, strict=True)
