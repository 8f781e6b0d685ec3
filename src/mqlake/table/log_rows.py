"""The rows of store directories: planned as the Spark source plans them, read on threads."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import msgspec
import pyarrow as pa

from mqlake.errors import FormatError
from mqlake.query.reading.conditions import Selection
from mqlake.query.store.access.index_path import topics_of
from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.columns import check_columns
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.place import open_store
from mqlake.query.store.plan import StorePlan, plan_batch
from mqlake.query.stores.plan import plan_stores
from mqlake.table import union_rows
from mqlake.table.batches import read_tasks
from mqlake.table.where import Where

_TASK_BYTES = 16 << 20
"""Approximate bytes of log that one task reads: enough that planning it hardly costs anything.
"""


class LogRows:
    """The messages of stores that options and filters choose, in log order.

    Each use reads the log again, up to its current end.
    """

    def __init__(self, stores: tuple[StoreReadOptions, ...], where: Where, threads: int) -> None:
        self._stores, self._where, self._threads = stores, where, threads

    @property
    def schema(self) -> Any:
        """The `pyarrow.Schema`."""
        return arrow_schema(self.columns)

    @property
    def path(self) -> str:
        """The store directory, or its URL; several are separated by commas."""
        return ",".join(store.path for store in self._stores)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; with a lake table, only those that it has, too."""
        first = self._stores[0]
        return first.columns if first.table is None else union_rows.columns(first)

    def select(self, *columns: str) -> Self:
        """Return the table with these columns only.

        Raises:
            FormatError: a column does not exist, or is named twice; or they are a list.
        """
        given: tuple[object, ...] = columns
        if not all(isinstance(name, str) for name in given):
            raise FormatError(f"select takes names, as select('topic', 'body'), not {given[0]!r}")
        names = check_columns(columns)
        chosen = (msgspec.structs.replace(store, columns=names) for store in self._stores)
        return type(self)(tuple(chosen), self._where, self._threads)

    def explain(self) -> str:
        """Plan a read; return one line for each store that says how much of the log is read.

        Raises:
            StoreError: as for `reader`.
            FormatError: the table is read together with a lake table.
        """
        return "\n".join(plan.explain() for plan in self._plans(self._where.pushed))

    def reader(self) -> Any:
        """Return a `pyarrow.RecordBatchReader` of the messages.

        Raises:
            StoreError: there is no store, or a topic is missing; while reading: damage.
        """
        return self.narrowed(self.columns, self._where)

    def narrowed(self, columns: Sequence[str], where: Where) -> Any:
        """Return a `pyarrow.RecordBatchReader` of some columns of the rows that satisfy filters.

        Args:
            where: filters that replace the table's own.
        """
        needed = [*columns, *sorted(where.columns.difference(columns))]
        batches = self._batches(needed, where)
        schema = arrow_schema(columns)
        if len(needed) > len(columns):
            batches = (batch.select(list(columns)) for batch in batches)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _batches(self, columns: list[str], where: Where) -> Iterator[Any]:
        if self._stores[0].table is not None:
            return union_rows.batches(self._stores[0], columns, where, self._threads)
        tasks = [task for plan in self._plans(where.pushed) for task in plan.tasks]
        return read_tasks(tasks, arrow_schema(columns), where.expression, self._threads)

    def topics(self) -> set[str]:
        """Return all topics that rows may have; an empty set if they are not known.

        Raises:
            StoreError: there is no store.
        """
        found: set[str] = set()
        if self._stores[0].table is not None:
            in_table = union_rows.topics(self._stores[0])
            if not in_table:
                return found
            found |= in_table
        for one in self._stores:
            with open_store(one.location) as store:
                found |= topics_of(store)
        return found

    def _plans(self, pushed: Selection) -> list[StorePlan]:
        first, *others = self._stores
        if first.table is not None:
            raise FormatError("option table: a read of a table and its log has no explanation")
        if others:
            return plan_stores(self._stores, pushed, _TASK_BYTES)
        return [plan_batch(first, pushed, _TASK_BYTES)]

    @property
    def filters(self) -> Where:
        """The filters of the table."""
        return self._where

    def __iter__(self) -> Iterator[Any]:
        """Yield the messages as `pyarrow.RecordBatch`es."""
        return iter(self.reader())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the messages as a PyCapsule (Arrow's C stream interface)."""
        return self.reader().__arrow_c_stream__(requested_schema)
