"""The columns of the source: those of Spark's Kafka source, with the same types."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mqlake.errors import FormatError
from mqlake.spark.options.parsing import nearest

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}
"""All columns, in their order, with their types in Spark's SQL. Each may be null."""


def check_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with these names, in any case.

    Raises:
        FormatError: a column does not exist, or is named twice.
    """
    known = {name.lower(): name for name in COLUMNS}
    for number, name in enumerate(names):
        if name.lower() not in known:
            near = nearest(name, list(COLUMNS))
            raise FormatError(f"there is no column {name[:200]!r}; the nearest is {near}")
        if name.lower() in (other.lower() for other in names[:number]):
            raise FormatError(f"column {name} is named twice")
    return tuple(known[name.lower()] for name in names)


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
