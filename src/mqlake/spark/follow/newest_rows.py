"""The newest message of each key in a batch, found by Spark."""

# pyright: basic
# Reason: PySpark carries few types.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KEY = "mqlake_key"
_NUMBER = "mqlake_number"


def newest(rows: DataFrame, column: str) -> DataFrame:
    """Return the newest row of each topic and key, and all rows without a key.

    The column `mqlake_key` is added: the key, or null without one.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    # Spark splits a shuffle of a streaming query into 200 tasks, however few the rows are.
    tasks = rows.sparkSession.sparkContext.defaultParallelism
    keyed = rows.withColumn(_KEY, _key(rows, column)).repartition(tasks, "topic", _KEY)
    # The messages of an inner batch are in one record.
    newest_first = [sql.col(name).desc() for name in ("physicalOffset", "queueOffset")]
    order = Window.partitionBy("topic", _KEY).orderBy(*newest_first)
    ranked = keyed.withColumn(_NUMBER, sql.row_number().over(order))
    stays = sql.col(_KEY).isNull() | (sql.col(_NUMBER) == 1)
    return ranked.where(stays).drop(_NUMBER)


def _key(rows: DataFrame, column: str) -> Column:
    from pyspark.sql import functions as sql
    from pyspark.sql.types import ArrayType

    if isinstance(rows.schema[column].dataType, ArrayType):
        return sql.nullif(sql.array_join(sql.col(column), " "), sql.lit(""))
    return sql.col(column)


def to_write(found: DataFrame) -> DataFrame:
    """Return the rows of `newest` that stay: an empty body deletes its key."""
    from pyspark.sql import functions as sql

    is_deletion = sql.col(_KEY).isNotNull() & (sql.coalesce(sql.length("body"), sql.lit(0)) == 0)
    return (
        found.where(~is_deletion).drop(_KEY).sortWithinPartitions("physicalOffset", "queueOffset")
    )


def keys_of(found: DataFrame) -> Any:
    """Return topics and keys of the rows of `newest` as a `pyarrow.Table`."""
    from pyspark.sql import functions as sql

    keys = found.where(sql.col(_KEY).isNotNull()).select("topic", sql.col(_KEY).alias("key"))
    return keys.toArrow()
