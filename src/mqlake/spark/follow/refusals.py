"""Rows of a batch that their tables refuse: found by Spark, and stored as dead letters."""

# pyright: basic
# Reason: PySpark carries few types.

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlake.lake.files.letters import COLUMNS, from_rows
from mqlake.lake.files.partition_writer import FileShape, Shapes, WrittenFiles, write_all
from mqlake.lake.files.row_checks import RowChecks
from mqlake.lake.files.topic_shapes import TopicShapes
from mqlake.lake.follow.dead_letters import DeadLetterTable
from mqlake.lake.tables.evolution import table_schema
from mqlake.spark.follow.row_writing import write_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROW = "mqlake_row"


class DividedRows(NamedTuple):
    """The rows of a batch, divided.

    Attributes:
        reason: why tables refuse rows.
    """

    taken: DataFrame
    refused: DataFrame
    reason: str


def refusal_of(rows: DataFrame, shapes: Shapes) -> DividedRows | None:
    """Divide rows into those that their tables take, and those that they refuse.

    Returns:
        None if no table refuses or checks rows.
    """
    if isinstance(shapes, TopicShapes):
        return _by_topic(rows, shapes)
    if isinstance(shapes, FileShape) and shapes.checks is not None:
        return DividedRows(*split(shapes.checks, rows), shapes.checks.reason)
    return None


def _by_topic(rows: DataFrame, shapes: TopicShapes) -> DividedRows | None:
    from pyspark.sql import functions as sql

    checks = {topic: shape.checks for topic, shape in shapes.known.items() if shape.checks}
    reasons = [*shapes.refused.values(), *(one.reason for one in checks.values())]
    if not reasons:
        return None
    topic = sql.col("topic")
    taken = rows.where(~topic.isin([*shapes.refused, *checks]))
    refused = rows.where(topic.isin(list(shapes.refused)))
    for name, one in checks.items():
        good, bad = split(one, rows.where(topic == name))
        taken, refused = taken.unionByName(good), refused.unionByName(bad)
    return DividedRows(taken, refused, "; ".join(reasons))


def split(checks: RowChecks, rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the rows that the table takes, and those that it refuses."""
    from pyspark.sql import functions as sql

    seen = rows.select(
        sql.struct(*[sql.col(f"`{name}`") for name in rows.columns]).alias(_ROW),
        *_columns(checks, rows),
    )
    good: Column = reduce(
        lambda one, other: one & other,
        [sql.coalesce(sql.expr(check.sql), sql.lit(False)) for check in checks.checks],
    )
    taken, refused = seen.where(good), seen.where(~good)
    return taken.select(f"{_ROW}.*"), refused.select(f"{_ROW}.*")


def _columns(checks: RowChecks, rows: DataFrame) -> Sequence[Column]:
    """Return the table's columns, by the names of its schema."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import StructType

    made: list[Any] = []
    for field in StructType.fromJson(json.loads(checks.schema)):
        if field.name in checks.written and field.name in rows.columns:
            value = sql.col(f"`{field.name}`")
        elif field.name in checks.written and field.name == "day":
            value = sql.to_date(sql.col("storeTimestamp"))
        else:
            value = sql.lit(None)
        made.append(value.cast(field.dataType).alias(field.name))
    return made


def set_aside(dead_letters: DeadLetterTable, batch: int, rows: DataFrame, reason: str) -> int:
    """Store rows of a batch that the table refuses; return how many there are."""
    shape = dead_letters.refused_shape(batch)
    if shape is None:
        return 0
    write = partial(_write_letters, store=dead_letters.store, reason=reason)
    files = [file for one in write_rows(rows, shape, write) for file in one.files]
    dead_letters.add_refused(batch, files)
    return sum(file.rows for file in files)


def _write_letters(
    shape: Shapes, batches: Iterator[Any], *, store: str, reason: str
) -> WrittenFiles:
    schema = table_schema(COLUMNS)
    letters = (from_rows(batch, store=store, reason=reason, schema=schema) for batch in batches)
    return WrittenFiles(write_all(shape, letters), 0)
