"""The rows of a lake table and of the log after it, as those of one table (docs/union-read.md)."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mqlake.lake.union.followed import open_table
from mqlake.lake.union.plan import plan_union
from mqlake.lake.union.read import LakeTask
from mqlake.lake.union.read import read as read_lake
from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.read import read as read_log
from mqlake.table.batches import read_tasks
from mqlake.table.where import Where


def columns(options: StoreReadOptions) -> tuple[str, ...]:
    """Return the columns of a query that the lake table has.

    Raises:
        JobError: there is no such table.
    """
    there = open_table(options).columns
    return tuple(name for name in options.columns if name in there)


def topics(options: StoreReadOptions) -> set[str]:
    """Return the topics of the lake table; an empty set if its files do not tell."""
    found = {file.topic for file in open_table(options).files(())}
    return set() if None in found else {topic for topic in found if topic is not None}


def batches(
    options: StoreReadOptions, names: list[str], where: Where, threads: int
) -> Iterator[Any]:
    """Yield the rows as `pyarrow.RecordBatch`es of some columns, each message once.

    Raises:
        FormatError: the table lacks a column, or does not follow a topic.
        JobError: the table does not exist, or does not record what it follows.
        StoreError: the log is not the one that the table follows; while reading: damage.
    """
    tasks = plan_union(options, names, where.pushed)
    return read_tasks(tasks, arrow_schema(names), where.expression, threads, _read)


def _read(task: Any, schema: Any) -> Iterator[Any]:
    return read_lake(task, schema) if isinstance(task, LakeTask) else read_log(task, schema)
