"""Read rows as tasks do, without a Spark around them; and what they ought to be."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqlake.query.kafka_log.options import KafkaLogReadOptions, read_options
from mqlake.query.kafka_log.plan import KafkaLogTask, plan_batch
from mqlake.query.kafka_log.read import read
from mqlake.query.reading.conditions import Selection
from mqlake.spark.kafka_log.schema import spark_schema
from mqlake.spark.reading.schema import arrow_schema
from tests.golden_kafka import short

Row = dict[str, Any]

TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}


def options_of(path: Path | str, *, streaming: bool = False, **options: Any) -> KafkaLogReadOptions:
    """Return the options of a query; an underscore stands for a dot."""
    given = {name.replace("_", "."): str(value) for name, value in options.items()}
    return read_options({"path": str(path), **given}, streaming=streaming)


def batch_rows(path: Path | str, pushed: Selection = (), **options: Any) -> list[Row]:
    """Return the rows of a batch query, by partition and offset."""
    asked = options_of(path, **options)
    tasks = plan_batch(asked, pushed).tasks
    return in_order(row for task in tasks for row in task_rows(task, asked))


def task_rows(task: KafkaLogTask, options: KafkaLogReadOptions) -> Iterator[Row]:
    """Yield the rows of a task, their times in milliseconds."""
    schema = arrow_schema(spark_schema(options.columns))
    for batch in read(task, schema):
        assert batch.schema.equals(schema)
        batch.validate(full=True)
        # Some recorded times are none that Python's datetime has.
        if "timestamp" in batch.schema.names:
            number = batch.schema.get_field_index("timestamp")
            batch = batch.set_column(number, "timestamp", batch.column(number).cast("int64"))
        for row in batch.to_pylist():
            if "timestamp" in row:
                row["timestamp"] //= 1000
            yield row


def in_order(rows: Any) -> list[Row]:
    """Return rows by partition and offset, as far as they have these columns."""
    order = ("topic", "partition", "offset")
    return sorted(rows, key=lambda row: [row[name] for name in order if name in row])


def as_recorded(row: Row) -> Row:
    """Return a row as Kafka's consumer was recorded with, but for the leader epoch."""
    headers = row["headers"] or []
    pairs = [(one["key"], one["value"]) for one in headers]
    return short(
        {
            "offset": row["offset"],
            "timestamp": row["timestamp"],
            "timestampType": TYPES[row["timestampType"]],
            "key": _base64(row["key"]),
            "value": _base64(row["value"]),
            "headers": [[name, _base64(value)] for name, value in pairs],
        }
    )


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
