"""Rows of a batch that the tables of their topics refuse."""

# pyright: basic
# Reason: PySpark carries few types.

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlake.spark.follow.partition_writer import Shape, Shapes
from mqlake.spark.follow.topic_shapes import TopicShapes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Refusal(NamedTuple):
    """The rows of a batch, divided.

    Attributes:
        reason: why tables refuse rows.
    """

    taken: DataFrame
    refused: DataFrame
    reason: str


def refusal_of(rows: DataFrame, shapes: Shapes) -> Refusal | None:
    """Divide rows into those that their tables take, and those that they refuse.

    Returns:
        None if no table refuses or checks rows.
    """
    if isinstance(shapes, TopicShapes):
        return _by_topic(rows, shapes)
    if isinstance(shapes, Shape) and shapes.checks is not None:
        return Refusal(*shapes.checks.split(rows), shapes.checks.reason)
    return None


def _by_topic(rows: DataFrame, shapes: TopicShapes) -> Refusal | None:
    from pyspark.sql import functions as sql

    checks = {topic: shape.checks for topic, shape in shapes.known.items() if shape.checks}
    reasons = [*shapes.refused.values(), *(one.reason for one in checks.values())]
    if not reasons:
        return None
    topic = sql.col("topic")
    taken = rows.where(~topic.isin([*shapes.refused, *checks]))
    refused = rows.where(topic.isin(list(shapes.refused)))
    for name, one in checks.items():
        good, bad = one.split(rows.where(topic == name))
        taken, refused = taken.unionByName(good), refused.unionByName(bad)
    return Refusal(taken, refused, "; ".join(reasons))
