"""Read rows as tasks do, without a Spark around them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqlake.query.reading.conditions import Selection
from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.options import StoreReadOptions, read_options
from mqlake.query.store.plan import StoreTask, plan_batch
from mqlake.query.store.read import read

Row = dict[str, Any]


def options_of(path: Path | str, *, streaming: bool = False, **options: Any) -> StoreReadOptions:
    """Return the options of a query."""
    given = {name: str(value) for name, value in options.items()}
    return read_options({"path": str(path), **given}, streaming=streaming)


def batch_rows(path: Path | str, pushed: Selection = (), **options: Any) -> list[Row]:
    """Return the rows of a batch query, by physical offset."""
    asked = options_of(path, **options)
    tasks = plan_batch(asked, pushed).tasks
    return in_order(row for task in tasks for row in task_rows(task, asked))


def task_rows(task: StoreTask, options: StoreReadOptions) -> Iterator[Row]:
    """Yield the rows of a task, their times in milliseconds."""
    schema = arrow_schema(options.columns)
    for batch in read(task, schema):
        assert batch.schema.equals(schema)
        batch.validate(full=True)
        for row in batch.to_pylist(maps_as_pydicts="strict"):
            yield as_recorded(row)


def as_recorded(row: Row) -> Row:
    """Give a row's times the form of the recorded messages."""
    times = {"bornTimestamp", "storeTimestamp"} & row.keys()
    return row | {name: round(row[name].timestamp() * 1000) for name in times}


def in_order(rows: Any) -> list[Row]:
    """Return rows by physical offset."""
    return sorted(rows, key=lambda row: row["physicalOffset"])
