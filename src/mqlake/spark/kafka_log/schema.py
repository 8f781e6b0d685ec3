"""The columns of the source as Spark's types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mqlake.errors import FormatError
from mqlake.query.kafka_log.columns import COLUMNS, check_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def spark_schema(names: Iterable[str]) -> StructType:
    """Return the Spark schema of columns."""
    from pyspark.sql.types import (
        ArrayType,
        BinaryType,
        IntegerType,
        LongType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    types = {
        "binary": BinaryType(),
        "string": StringType(),
        "int": IntegerType(),
        "bigint": LongType(),
        "timestamp": TimestampType(),
        COLUMNS["headers"]: ArrayType(header),
    }
    return StructType([StructField(name, types[COLUMNS[name]]) for name in names])


def check_schema(schema: StructType) -> None:
    """Check a user's schema, as in `.schema("topic string, value binary")`.

    Raises:
        FormatError: a column does not exist, or has another type.
    """
    for field in schema.fields:
        [name] = check_columns([field.name])
        if field.name != name:
            raise FormatError(f"column {field.name}: write {name}")
        if field.dataType.simpleString() != COLUMNS[name]:
            given = field.dataType.simpleString()
            raise FormatError(f"column {name} has type {COLUMNS[name]}, not {given}")
    check_columns(schema.fieldNames())
