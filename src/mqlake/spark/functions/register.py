"""Register the table functions with a session."""

# pyright: basic
# PySpark's udtf is a decorator or a function, which its types do not distinguish.

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mqlake.query.functions.store_tables import STORE_TABLES, Row, rows_of
from mqlake.spark.pandas_warning import ignore_pandas_warning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> tuple[str, ...]:
    """Register mqlake's table functions with a session, and return their names.

    `SELECT * FROM rocketmq_groups('/data/store')` works until the session ends. The executors must
    see the store at the same path (docs/spark-sql.md).
    """
    from pyspark.sql.functions import udtf

    with ignore_pandas_warning():
        for name, table in STORE_TABLES.items():
            function: Any = udtf(_handler(name), returnType=table.columns)
            spark.udtf.register(name, function)
    return tuple(STORE_TABLES)


def _handler(name: str) -> type:
    """Return the class that Spark's workers call; it finds the table by its name."""

    class StoreFunction:
        def eval(self, path: str) -> Iterator[Row]:
            yield from rows_of(STORE_TABLES[name], path)

    return StoreFunction
