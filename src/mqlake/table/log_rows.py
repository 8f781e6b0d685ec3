"""The rows of store directories: planned as the Spark source plans them, read on threads."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import msgspec
import pyarrow as pa

from mqlake.query.reading.conditions import Selection
from mqlake.query.reading.directory import Location
from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.columns import check_columns
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.plan import StorePlan, plan_batch
from mqlake.query.stores.plan import plan_stores
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
    def locations(self) -> list[Location]:
        """The addresses of the stores, and how they are reached."""
        return [store.location for store in self._stores]

    @property
    def path(self) -> str:
        """The store directory, or its URL; several are separated by commas."""
        return ",".join(store.path for store in self._stores)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._stores[0].columns

    def select(self, *columns: str) -> Self:
        """Return the table with these columns only.

        Raises:
            FormatError: a column does not exist, or is named twice.
        """
        names = check_columns(columns)
        chosen = (msgspec.structs.replace(store, columns=names) for store in self._stores)
        return type(self)(tuple(chosen), self._where, self._threads)

    def explain(self) -> str:
        """Plan a read; return one line for each store that says how much of the log is read.

        Raises:
            StoreError: as for `reader`.
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
        tasks = [task for plan in self._plans(where.pushed) for task in plan.tasks]
        needed = [*columns, *sorted(where.columns.difference(columns))]
        batches = read_tasks(tasks, arrow_schema(needed), where.expression, self._threads)
        schema = arrow_schema(columns)
        if len(needed) > len(columns):
            batches = (batch.select(list(columns)) for batch in batches)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _plans(self, pushed: Selection) -> list[StorePlan]:
        first, *others = self._stores
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
