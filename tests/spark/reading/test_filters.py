"""Conditions hold for whatever a filter of Spark lets through."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import datasource as spark

from mqlake.query.reading.conditions import MOST, AnyNumber, AnyText, Between
from mqlake.spark.reading.filters import conditions
from tests.query.store.meaning import holds

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COMPARE = {
    spark.EqualTo: lambda a, b: a == b,
    spark.EqualNullSafe: lambda a, b: a == b,
    spark.GreaterThan: lambda a, b: a > b,
    spark.GreaterThanOrEqual: lambda a, b: a >= b,
    spark.LessThan: lambda a, b: a < b,
    spark.LessThanOrEqual: lambda a, b: a <= b,
}


@given(
    kind=st.sampled_from(list(COMPARE)),
    limit=st.integers(0, 5000),
    milliseconds=st.integers(0, 6),
)
def test_times_to_the_microsecond(kind: Any, limit: int, milliseconds: int) -> None:
    found = conditions([kind(("storeTimestamp",), EPOCH + timedelta(microseconds=limit))])
    row = {"storeTimestamp": milliseconds}
    passes = COMPARE[kind](milliseconds * 1000, limit)
    assert passes == all(holds(one, row) for one in found)
    assert len(found) == 1


@given(
    kind=st.sampled_from(list(COMPARE)),
    limit=st.sampled_from([0, 5, -MOST - 1, MOST, 1 << 40]),
    value=st.sampled_from([0, 4, 5, 6, MOST, 1 << 40]),
)
def test_numbers(kind: Any, limit: int, value: int) -> None:
    found = conditions([kind(("queueOffset",), limit)])
    passes = COMPARE[kind](value, limit)
    assert not passes or all(holds(one, {"queueOffset": value}) for one in found)


def test_lists_of_values() -> None:
    assert conditions([spark.In(("topic",), ("a", None, "b"))]) == (AnyText("topic", ("a", "b")),)
    assert conditions([spark.In(("queueId",), (1, 2))]) == (AnyNumber("queueId", (1, 2)),)
    half = EPOCH + timedelta(microseconds=1500)
    assert conditions([spark.In(("storeTimestamp",), (EPOCH, half))]) == (
        AnyNumber("storeTimestamp", (0,)),
    )


@pytest.mark.parametrize(
    "one",
    [
        spark.Not(spark.EqualTo(("topic",), "a")),
        spark.IsNull(("tags",)),
        spark.StringStartsWith(("topic",), "a"),
        spark.EqualTo(("properties", "a"), "b"),
        spark.EqualTo(("flag",), 1),
        spark.EqualTo(("topic",), None),
        spark.EqualTo(("keys",), ["a"]),
        spark.GreaterThan(("topic",), "a"),
        spark.LessThan(("queueOffset",), 1.5),
    ],
)
def test_other_filters_narrow_nothing(one: Any) -> None:
    assert conditions([one]) == ()


def test_all_filters_are_to_hold() -> None:
    both = [spark.GreaterThan(("queueId",), 1), spark.EqualTo(("tags",), "x")]
    assert conditions(both) == (Between("queueId", low=2), AnyText("tags", ("x",)))
