"""Spark's types by name, without a session, which Spark's own parser needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def simple_type(name: str) -> DataType:
    """Return a type that has no parts, and `decimal(20,0)`, by its name in Spark's SQL."""
    from pyspark.sql import types

    return {
        "boolean": types.BooleanType(),
        "int": types.IntegerType(),
        "bigint": types.LongType(),
        "float": types.FloatType(),
        "double": types.DoubleType(),
        "binary": types.BinaryType(),
        "string": types.StringType(),
        "date": types.DateType(),
        "timestamp": types.TimestampType(),
        "timestamp_ntz": types.TimestampNTZType(),
        "decimal(20,0)": types.DecimalType(20, 0),
        "void": types.NullType(),
    }[name]
