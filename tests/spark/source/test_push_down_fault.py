"""Whether this Spark keeps pushed filters to their query, seen by what it answers."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from mqlake.spark.reading.push_down import SAFE_RELEASES, release
from tests.golden import store
from tests.query.store.truth import expected_rows
from tests.spark.conftest import PUSH_DOWN

pytestmark = [pytest.mark.spark]


def test_only_releases_without_the_fault_are_safe(spark: SparkSession) -> None:
    """A release that answers rightly belongs into `SAFE_RELEASES`, any other must not be there."""
    rows = expected_rows(store("rmq5-clean"))
    wanted = [row for row in rows if row["topic"] == "TopicA"]
    reader = spark.read.format("rocketmq").option("pushFilters", "true")
    frame = reader.option("columns", "topic").load(str(store("rmq5-clean").path))
    spark.conf.set(PUSH_DOWN, "true")
    try:
        assert frame.where("topic = 'TopicA'").count() == len(wanted)
        everything = frame.count()
    finally:
        spark.conf.unset(PUSH_DOWN)
    assert 0 < len(wanted) < len(rows)
    assert (everything == len(rows)) == (release() in SAFE_RELEASES)
