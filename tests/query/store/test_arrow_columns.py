"""The Arrow schema of the columns is Spark's."""

from __future__ import annotations

from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.columns import COLUMNS
from mqlake.spark.reading.schema import arrow_schema as arrow_schema_of
from mqlake.spark.source.schema import spark_schema


def test_the_schema_is_spark_s_including_names_of_elements() -> None:
    expected = arrow_schema_of(spark_schema(COLUMNS))
    found = arrow_schema(COLUMNS)
    assert found.equals(expected, check_metadata=True)
    assert str(found) == str(expected)
