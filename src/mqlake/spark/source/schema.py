"""The columns of the source as Spark's types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mqlake.errors import FormatError
from mqlake.query.store.columns import COLUMNS, NULLABLE, check_columns, column_type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def spark_schema(names: Iterable[str]) -> StructType:
    """Return the Spark schema of columns."""
    from pyspark.sql.types import StructField, StructType

    types = _spark_types()
    return StructType(
        [StructField(name, types[column_type(name)], name in NULLABLE) for name in names]
    )


def columns_of(schema: StructType) -> tuple[str, ...]:
    """Return the columns of a user's schema, as in `.schema("topic string")`.

    Raises:
        FormatError: a column does not exist, or has another type.
    """
    types = _spark_types()
    for field in schema.fields:
        check_columns([field.name])
        if field.name not in COLUMNS:
            raise FormatError(f"column {field.name}: write {check_columns([field.name])[0]}")
        target = column_type(field.name)
        if field.dataType.simpleString() != types[target].simpleString():
            given = field.dataType.simpleString()
            raise FormatError(f"column {field.name} has type {target}, not {given}")
    return check_columns(schema.fieldNames())


def _spark_types() -> dict[str, DataType]:
    from pyspark.sql.types import (
        ArrayType,
        BinaryType,
        IntegerType,
        LongType,
        MapType,
        StringType,
        TimestampType,
    )

    return {
        "string": StringType(),
        "binary": BinaryType(),
        "int": IntegerType(),
        "bigint": LongType(),
        "timestamp": TimestampType(),
        "array<string>": ArrayType(StringType()),
        "map<string,string>": MapType(StringType(), StringType()),
    }
