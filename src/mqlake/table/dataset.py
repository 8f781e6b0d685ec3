"""A table as a `pyarrow.dataset.Dataset`, which DuckDB, Polars and others query."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import pyarrow.dataset as datasets

from mqlake.query.store.columns import COLUMNS
from mqlake.table import pruning
from mqlake.table.log_rows import LogRows


class LogDataset(datasets.Dataset):
    """The messages of a table. Engines ask for a scanner of the columns and rows that they need.

    It has no files or fragments, unlike a dataset of Parquet files.
    """

    def __init__(self, table: LogRows, chosen: Any = None) -> None:
        self._table, self._chosen = table, chosen

    @property
    def schema(self) -> Any:
        """The `pyarrow.Schema` of the table."""
        return self._table.schema

    def scanner(
        self,
        columns: Iterable[str] | Mapping[str, Any] | None = None,
        filter: Any = None,  # noqa: A002 (pyarrow's name)
        **settings: Any,  # noqa: ARG002 (engines say how to scan files)
    ) -> Any:
        """Return a `pyarrow.dataset.Scanner`.

        Args:
            columns: names, or expressions by name; all columns if None.
            filter: a `pyarrow.compute.Expression` that selects rows. It is applied exactly, and
                limits the part of the log that is read by topic, queue id, offsets and store time.
            settings: how files are scanned; they have no effect here.

        Raises:
            StoreError: there is no store, or a topic is missing.
        """
        filter = _both(self._chosen, filter)  # noqa: A001
        if columns is not None and not isinstance(columns, Mapping):
            columns = list(columns)
        table = self._table.select(*_needed(self.schema.names, columns, filter))
        where = self._table.filters
        if filter is not None:
            where = where._replace(pushed=(*where.pushed, *self._pushed(filter)))
        reader = table.narrowed(table.columns, where)
        return datasets.Scanner.from_batches(reader, columns=columns, filter=filter)

    def _pushed(self, expression: Any) -> Any:
        columns = pruning.columns_in(expression)
        topics = self._table.topics() if "topic" in columns else set[str]()
        return pruning.pushed(expression, columns, topics)

    # The methods of `pyarrow.dataset.Dataset` below need a dataset of C++, which this one lacks.

    def filter(self, expression: Any) -> LogDataset:
        """Return the dataset with only the rows that satisfy an expression."""
        return LogDataset(self._table, _both(self._chosen, expression))

    def sort_by(self, sorting: Any, **settings: Any) -> Any:
        """Return the rows in an order, in memory."""
        return datasets.InMemoryDataset(self.to_table().sort_by(sorting, **settings))

    def join(self, right_dataset: Any, *keys: Any, **settings: Any) -> Any:
        """Return the join with another dataset, in memory."""
        return datasets.InMemoryDataset(
            self.to_table().join(right_dataset.to_table(), *keys, **settings)
        )

    def join_asof(self, right_dataset: Any, *keys: Any, **settings: Any) -> Any:
        """Return the as-of join with another dataset, in memory."""
        return datasets.InMemoryDataset(
            self.to_table().join_asof(right_dataset.to_table(), *keys, **settings)
        )

    def count_rows(self, filter: Any = None, **settings: Any) -> int:  # noqa: A002
        """Return how many rows satisfy a filter."""
        return self.scanner([], filter, **settings).count_rows()

    def to_table(self, columns: Any = None, filter: Any = None, **settings: Any) -> Any:  # noqa: A002
        """Return columns of the rows that satisfy a filter as a `pyarrow.Table`."""
        return self.scanner(columns, filter, **settings).to_table()


def _both(one: Any, other: Any) -> Any:
    """Return the expression that is true if two are; None counts as true."""
    given = [pruning.boolean(each) for each in (one, other) if each is not None]
    return reduce(operator.and_, given) if given else None


def _needed(all_columns: list[str], columns: Any, expression: Any) -> list[str]:
    """Return the columns to read; at least one narrow column, so that rows can be counted."""
    expressions = [] if expression is None else [expression]
    if isinstance(columns, Mapping):
        expressions += columns.values()
        columns = []
    names = set(all_columns if columns is None else columns)
    for one in expressions:
        names |= pruning.columns_in(one)
    return [name for name in COLUMNS if name in names] or ["physicalOffset"]
