"""The columns as Spark's types, and as Arrow's, are the same."""

from __future__ import annotations

import subprocess
import sys

from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.columns import COLUMNS
from mqlake.spark.data_source import RocketMQDataSource
from mqlake.spark.reading.schema import arrow_schema as arrow_schema_of
from mqlake.spark.source.schema import spark_schema


def test_the_schema_is_spark_s_including_names_of_elements() -> None:
    expected = arrow_schema_of(spark_schema(COLUMNS))
    found = arrow_schema(COLUMNS)
    assert found.equals(expected, check_metadata=True)
    assert str(found) == str(expected)


def test_the_schema_of_several_stores_needs_no_store() -> None:
    source = RocketMQDataSource({"path": "/nowhere/*", "columns": "body,brokerName"})
    assert source.schema() == spark_schema(("body", "brokerName"))


def test_the_columns_of_a_store_need_no_client() -> None:
    """Spark asks for them, and plans each query, in processes that import the source anew."""
    program = (
        "import sys; from mqlake.spark.data_source import RocketMQDataSource as Source; "
        "Source({'path': 'store'}).schema(); "
        "print([name for name in ('asyncio', 'mqlake.client.access') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ran.stdout == b"[]\n"
