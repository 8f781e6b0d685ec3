"""Read rows of a cluster as tasks do, without a Spark around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mqlake.query.live.options import LiveOptions, live_options
from mqlake.query.live.plan import plan_batch
from mqlake.query.live.read import read
from mqlake.query.live.task import LiveTask
from mqlake.query.reading.conditions import Selection
from mqlake.query.store.arrow_columns import arrow_schema
from tests.query.store.rows import Row, as_recorded, in_order


def options_of(name_server: str, *, streaming: bool = False, **options: Any) -> LiveOptions:
    """Return the options of a query."""
    given = {name: str(value) for name, value in options.items()}
    return live_options({"nameServer": name_server, **given}, streaming=streaming)


def batch_rows(name_server: str, pushed: Selection = (), **options: Any) -> list[Row]:
    """Return the rows of a batch query, by physical offset."""
    asked = options_of(name_server, **options)
    return in_order(row for task in plan_batch(asked, pushed) for row in task_rows(task, asked))


def task_rows(task: LiveTask, options: LiveOptions) -> Iterator[Row]:
    """Yield the rows of a task, their times in milliseconds."""
    schema = arrow_schema(options.columns)
    for batch in read(task, schema):
        assert batch.schema.equals(schema)
        batch.validate(full=True)
        for row in batch.to_pylist(maps_as_pydicts="strict"):
            yield as_recorded(row)
