"""Read rows of a cluster as tasks do, without a Spark around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mqlake.spark.live.options import LiveOptions, live_options
from mqlake.spark.live.plan import plan_batch
from mqlake.spark.live.read import read
from mqlake.spark.live.task import Task
from mqlake.spark.reading.conditions import Selection
from mqlake.spark.reading.schema import arrow_schema
from mqlake.spark.source.schema import spark_schema
from tests.spark.source.rows import Row, as_recorded, in_order


def options_of(name_server: str, *, streaming: bool = False, **options: Any) -> LiveOptions:
    """Return the options of a query."""
    given = {name: str(value) for name, value in options.items()}
    return live_options({"nameServer": name_server, **given}, streaming=streaming)


def batch_rows(name_server: str, pushed: Selection = (), **options: Any) -> list[Row]:
    """Return the rows of a batch query, by physical offset."""
    asked = options_of(name_server, **options)
    return in_order(row for task in plan_batch(asked, pushed) for row in task_rows(task, asked))


def task_rows(task: Task, options: LiveOptions) -> Iterator[Row]:
    """Yield the rows of a task, their times in milliseconds."""
    schema = arrow_schema(spark_schema(options.columns))
    for batch in read(task, schema):
        assert batch.schema.equals(schema)
        batch.validate(full=True)
        for row in batch.to_pylist(maps_as_pydicts="strict"):
            yield as_recorded(row)
