"""What other programs do to a table between batches, and what its rows must be afterwards.

Columns of the model have numbers, as Iceberg's have ids: a value belongs to a column, whatever it
is called.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
from deltalake import DeltaTable, Field
from pyiceberg.types import LongType, StringType

from mqlake.lake.files.compaction import merge
from mqlake.lake.options import Format
from mqlake.lake.tables.opening import open_table
from mqlake.lake.tables.table import LakeTable
from tests.lake.tables.tables import add, iceberg, options, read, row

COLUMNS = (
    "topic",
    "body",
    "properties",
    "queueId",
    "queueOffset",
    "storeTimestamp",
    "tags",
    "keys",
)
NEEDED = ("topic", "storeTimestamp", "queueOffset")
"""Columns that partitions and this model need: they are renamed, but not dropped."""

Values = dict[int, Any]


class Column(msgspec.Struct):
    """A column of the model.

    Attributes:
        message: the column of messages that it has, if any.
    """

    name: str
    message: str | None = None
    is_long: bool = False


class Touched:
    """A table that `follow` and others change in turn.

    Args:
        write: commits rows as a batch.
        has_ids: whether all files have field ids. Names of others are not given to columns again,
            as files without ids are read by name.
    """

    def __init__(
        self,
        path: Path,
        format_: Format,
        random: Random,
        write: Any = add,
        *,
        has_ids: bool = True,
    ) -> None:
        self.path, self.format, self.random, self.write = path, format_, random, write
        self.has_ids = has_ids
        self.parts = random.choice([("topic", "day"), ("topic",), ()])
        self.options = options(path, format_, columns=COLUMNS, partition_by=self.parts)
        self.table: LakeTable = open_table(self.options)
        self.columns = {number: Column(name, name) for number, name in enumerate(COLUMNS)}
        self.next = len(COLUMNS)
        self.rows: list[Values] = []
        self.versions: list[tuple[int, list[Values]]] = []
        self.batch = self.made = 0

    def steps(self) -> list[Callable[[], None]]:
        """Return what may happen next."""
        mine = [self.follow, self.follow, self.compact, self.reopen]
        both = [self.add_column, self.set_property, self.delete_rows, self.rewrite, self.restore]
        if self.format is Format.DELTA:  # without column mapping, it has no more
            return [*mine, *both]
        if "day" in self.parts:  # without an optional package, PyIceberg writes none such
            both = [one for one in both if one not in (self.rewrite, self.delete_rows)]
        return [*mine, *both, self.rename, self.rename, self.drop, self.move, self.widen]

    def follow(self) -> None:
        """Write a batch of messages."""
        rows = [self._message() for _ in range(self.random.randint(1, 3))]
        self.write(self.table, self.batch, rows, COLUMNS)
        self.batch += 1
        by_message = {one.message: number for number, one in self.columns.items() if one.message}
        self.rows += [
            {by_message[name]: value for name, value in one.items() if name in by_message}
            for one in rows
        ]

    def _message(self) -> dict[str, Any]:
        number, self.made = self.made, self.made + 1
        return row(
            number,
            self.random.choice("AB"),
            queueId=number % 4,
            tags=self.random.choice([None, f"tag{number}"]),
            keys=[f"k{number}"] * self.random.randint(0, 2),
            properties=[("p", str(number))],
        )

    def compact(self) -> None:
        """Merge small files."""
        self.table.replace([merge(job) for job in self.table.merges(is_last=True)])

    def reopen(self) -> None:
        """Start `follow` again."""
        self.table = open_table(self.options)

    def add_column(self) -> None:
        """Add a column, which may have the name of a column that was dropped."""
        taken = {one.name for one in self.columns.values()}
        lost = set(COLUMNS) - {one.message for one in self.columns.values()} - taken
        name = self.random.choice([f"note{self.next}", *self._names(lost)])
        message = name if name in lost else None
        self.columns[self.next] = Column(name, message)
        self.next += 1
        if self.format is Format.DELTA:
            DeltaTable(self.path).alter.add_columns([Field(name, "string")])  # pyright: ignore[reportArgumentType]
        else:
            with iceberg(self.path).update_schema() as update:
                update.add_column(name, StringType())

    def _names(self, lost: set[str]) -> list[str]:
        """Return those of lost names that a new column of text may have."""
        return sorted(lost & {"tags"}) if self.has_ids else []

    def rename(self) -> None:
        """Rename a column; two may exchange their names."""
        first, second = self.random.sample(sorted(self.columns), 2)
        one, two = self.columns[first], self.columns[second]
        names = [(one, f"re{self.made}{self.random.randint(0, 99)}{one.name[-3:]}")]
        # No column may take the name of a partition, which is that of the topic.
        if self.has_ids and "topic" not in (one.name, two.name) and self.random.random() < 0.4:
            names = [(one, "mean"), (two, one.name), (one, two.name)]
        for column, name in names:
            with iceberg(self.path).update_schema() as update:
                update.rename_column(column.name, name)
            column.name = name

    def drop(self) -> None:
        """Drop a column."""
        free = [number for number, one in self.columns.items() if one.message not in NEEDED]
        if free:
            gone = self.columns.pop(self.random.choice(sorted(free)))
            with iceberg(self.path).update_schema() as update:
                update.delete_column(gone.name)

    def move(self) -> None:
        """Change the order of columns."""
        name = self.columns[self.random.choice(sorted(self.columns))].name
        with iceberg(self.path).update_schema() as update:
            update.move_first(name)

    def widen(self) -> None:
        """Make a column of small numbers one of large numbers."""
        for one in self.columns.values():
            if one.message == "queueId" and not one.is_long:
                one.is_long = True
                with iceberg(self.path).update_schema() as update:
                    update.update_column(one.name, LongType())

    def set_property(self) -> None:
        """Set a property of the table."""
        if self.format is Format.DELTA:
            DeltaTable(self.path).alter.set_table_properties(
                {"delta.logRetentionDuration": f"interval {self.random.randint(10, 99)} days"}
            )
        else:
            with iceberg(self.path).transaction() as transaction:
                transaction.set_properties({"owner": str(self.made)})

    def delete_rows(self) -> None:
        """Delete the rows of one queue offset."""
        if not self.rows:
            return
        number = self._number("queueOffset")
        gone = self.random.choice(self.rows)[number]
        condition = f"{self.columns[number].name} = {gone}"
        if self.format is Format.DELTA:
            DeltaTable(self.path).delete(condition)
        else:
            iceberg(self.path).delete(condition)
        self.rows = [one for one in self.rows if one[number] != gone]

    def rewrite(self) -> None:
        """Write all rows again, as another engine's compaction does."""
        if self.format is Format.DELTA:
            DeltaTable(self.path).optimize.compact()
        elif self.rows:
            table = iceberg(self.path)
            table.overwrite(table.scan().to_arrow())

    def restore(self) -> None:
        """Note this version, or return to one that was noted."""
        table = DeltaTable(self.path) if self.format is Format.DELTA else iceberg(self.path)
        if self.versions and self.random.random() < 0.5:
            version, rows = self.random.choice(self.versions)
            if isinstance(table, DeltaTable):
                # Columns are restored, too: they must be the same.
                before = DeltaTable(self.path, version=version).schema()
                if len(table.schema().fields) == len(before.fields):
                    table.restore(version)
                    self.rows = list(rows)
            else:
                table.manage_snapshots().set_current_snapshot(snapshot_id=version).commit()
                self.rows = list(rows)
        elif isinstance(table, DeltaTable):
            self.versions.append((table.version(), list(self.rows)))
        elif (snapshot := table.current_snapshot()) is not None:
            self.versions.append((snapshot.snapshot_id, list(self.rows)))

    def _number(self, message: str) -> int:
        return next(number for number, one in self.columns.items() if one.message == message)

    def expected(self) -> list[dict[str, Any]]:
        """Return the rows by the names of the table's columns."""
        names = {number: one.name for number, one in self.columns.items()}
        rows = [{name: row.get(number) for number, name in names.items()} for row in self.rows]
        return _sorted(rows, names[self._number("queueOffset")])

    def found(self) -> list[dict[str, Any]]:
        """Return the rows as the table's own reader reads them."""
        name = self.columns[self._number("queueOffset")].name
        times = self.columns[self._number("storeTimestamp")].name
        rows = read(self.format, self.path)
        if self.format is Format.DELTA and "day" in self.parts:
            rows = rows.drop_columns(["day"])
        return _sorted(_plain(rows, times), name)

    def scanned(self) -> list[dict[str, Any]]:
        """Return the rows as `--check` reads them."""
        names = self.table.column_names()
        names = [name for name in names if name != "day"]
        rows = [one for batch in self.table.scan(names) for one in _plain(batch, "storeTimestamp")]
        return _sorted(rows, "queueOffset")

    def messages(self) -> list[dict[str, Any]]:
        """Return the rows by the names of messages' columns."""
        mine = {
            number: one.message or one.name
            for number, one in self.columns.items()
            if one.message or self.format is Format.DELTA
        }
        rows = [{name: row.get(number) for number, name in mine.items()} for row in self.rows]
        return _sorted(rows, "queueOffset")


def _plain(rows: Any, times: str) -> list[dict[str, Any]]:
    number = rows.schema.get_field_index(times)
    as_numbers = rows.column(number).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    return table.set_column(number, times, as_numbers).to_pylist()


def _sorted(rows: list[dict[str, Any]], by: str) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda one: one[by])
