"""Convert the filters that Spark pushes down to conditions.

Spark applies all filters again, so a condition may let more through than its filter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mqlake.query.reading.bounds import MESSAGES, ConditionColumns, any_of, between
from mqlake.query.reading.conditions import Condition, Selection

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


def conditions(filters: Iterable[Filter], known: ConditionColumns = MESSAGES) -> Selection:
    """Return the conditions that limit what is read among filters that must all hold; times are in
    milliseconds.
    """
    found = (_condition(one, known) for one in filters)
    return tuple(one for one in found if one is not None)


def _condition(one: Filter, known: ConditionColumns) -> Condition | None:
    from pyspark.sql import datasource as spark

    if isinstance(one, spark.EqualTo | spark.EqualNullSafe):
        return any_of(known, one.attribute, [one.value])
    if isinstance(one, spark.In):
        return any_of(known, one.attribute, [value for value in one.value if value is not None])
    if isinstance(one, spark.GreaterThan):
        return between(known, one.attribute, low=one.value, is_open=True)
    if isinstance(one, spark.GreaterThanOrEqual):
        return between(known, one.attribute, low=one.value)
    if isinstance(one, spark.LessThan):
        return between(known, one.attribute, high=one.value, is_open=True)
    if isinstance(one, spark.LessThanOrEqual):
        return between(known, one.attribute, high=one.value)
    return None
