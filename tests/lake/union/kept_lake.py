"""A store that grows, and a table that is kept of it, without a Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqlake.lake.files.compaction import merge
from mqlake.lake.files.partition_writer import write_all
from mqlake.lake.followers.identity import CheckpointIdentity, note_query
from mqlake.lake.options import PARTITIONS, FollowOptions, Format
from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.lake.tables.evolution import table_schema
from mqlake.lake.tables.opening import open_table
from mqlake.lake.tables.table import LakeTable
from mqlake.lake.union import read as lake_reading
from mqlake.lake.union.plan import plan_union
from mqlake.lake.union.read import LakeTask
from mqlake.query.reading.conditions import Selection
from mqlake.query.store import read as log_reading
from mqlake.query.store.access.boundaries import Boundaries
from mqlake.query.store.columns import COLUMNS
from mqlake.query.store.fingerprint import fingerprint
from mqlake.query.store.offsets import subscription
from mqlake.query.store.options import read_options
from mqlake.query.store.place import open_store
from mqlake.query.store.plan import plan_tasks
from mqlake.spark.reading.schema import arrow_schema
from mqlake.spark.source.union_schema import union_schema
from tests.query.store.growing import GrowingStore
from tests.query.store.rows import Row, as_recorded, batch_rows, in_order

FOLLOWER = "0123456789abcdef" * 2


class KeptLake:
    """What `follow` does to a table, step by step; `truth` has each message that there ever was.

    Args:
        source: options of the source, such as `subscribe`.
        parts: what the table is partitioned by.
    """

    def __init__(
        self,
        path: Path,
        format_: Format,
        seed: int = 0,
        source: dict[str, str] | None = None,
        parts: tuple[str, ...] = PARTITIONS,
    ) -> None:
        self.store = GrowingStore(path / "store", seed)
        self.out = path / "table"
        self.truth: dict[int, Row] = {}
        self._dropped: list[Path] = []
        self.grow(20)
        begin = {"physicalOffset": 0}
        self.options = FollowOptions(
            store=self.store.path,
            checkpoint=self.out / "_mqlake" / "checkpoint",
            source=source or {},
            columns=COLUMNS,
            format=format_,
            out=self.out,
            publish_after=1e9,
            partition_by=parts,
        )
        note_query(self.options, CheckpointIdentity(FOLLOWER, str(self.store.path), "", begin))
        self.table: LakeTable = open_table(self.options)
        self.end, self.batch = 0, 0

    def grow(self, count: int, topics: tuple[str, ...] = ("A", "B")) -> None:
        """Append messages."""
        self.store.grow(count, topics)
        for path in self._dropped:
            path.unlink()
        self.truth |= {row["physicalOffset"]: row for row in batch_rows(self.store.path)}

    def take(self, count: int = 1 << 30, *, is_committed: bool = True) -> None:
        """Write a batch of so many messages at most, and commit it."""
        ahead = sorted(offset for offset in self.truth if offset >= self.end)
        with open_store(str(self.store.path)) as store:
            end = ahead[count] if count < len(ahead) else store.snapshot.end.offset
            start = max(self.end, store.log.min_offset)
            given = {**self.options.source, "path": str(self.store.path)}
            query = read_options(given, streaming=True)
            tasks = plan_tasks(
                store, Boundaries(store, end), query, subscription(query), [(start, end)]
            )
            mark = fingerprint(store.log, end)
        schema = table_schema(COLUMNS)
        batches = [batch for task in tasks for batch in log_reading.read(task, schema)]
        files = write_all(self.table.shape(FOLLOWER, self.batch), batches)
        if is_committed:
            self.table.commit(FOLLOWER, self.batch, files, end=CommittedEnd(end, mark, self.batch))
            self.end, self.batch = end, self.batch + 1

    def compact(self) -> None:
        """Merge small files."""
        self.table.replace([merge(job) for job in self.table.merges(is_last=True)])

    def drop_segments(self, end: int | None = None) -> None:
        """Delete the log before an offset, the table's end if None, as retention does."""
        for path in sorted((self.store.path / "commitlog").iterdir()):
            if int(path.name) + 4096 <= (self.end if end is None else end):
                path.unlink()
                self._dropped.append(path)

    def given(self, **options: Any) -> dict[str, str]:
        """Return the options of a query over the table and the log."""
        asked = {name: str(value) for name, value in options.items()}
        return {"path": str(self.store.path), "table": str(self.out), **asked}

    def rows(self, pushed: Selection = (), **options: Any) -> list[Row]:
        """Return the rows of a query over the table and the log."""
        return union_rows(self.given(**options), pushed)

    def expected(self) -> list[Row]:
        """Return all messages that there ever were, as rows."""
        return in_order(self.truth.values())


def union_rows(given: dict[str, str], pushed: Selection = ()) -> list[Row]:
    """Return the rows of a query, by physical offset."""
    names = union_schema(given).names
    tasks = plan_union(read_options(given, streaming=False), names, pushed)
    return rows_of(tasks, given)


def rows_of(tasks: list[Any], given: dict[str, str]) -> list[Row]:
    """Return the rows of tasks, by physical offset."""
    schema = arrow_schema(union_schema(given))
    found: list[Row] = []
    for task in tasks:
        read: Any = lake_reading.read if isinstance(task, LakeTask) else log_reading.read
        for batch in read(task, schema):
            assert batch.schema.equals(schema)
            batch.validate(full=True)
            found += [as_recorded(row) for row in batch.to_pylist(maps_as_pydicts="strict")]
    return in_order(found) if "physicalOffset" in schema.names else found
