"""The columns of the source: rocketmq-spark's first, then what else a record has.

`properties` is a map, where rocketmq-spark had JSON text.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqlake.errors import FormatError
from mqlake.spark.options.parsing import nearest

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from mqlake.dispatch.batch import Batch

BROKER_NAME = "brokerName"

COLUMNS: tuple[str, ...] = (
    "topic",
    "flag",
    "body",
    "properties",
    "brokerName",
    "queueId",
    "queueOffset",
    "bornTimestamp",
    "storeTimestamp",
    "physicalOffset",
    "size",
    "tags",
    "keys",
    "msgId",
    "uniqKey",
    "sysFlag",
    "reconsumeTimes",
    "bornHost",
    "storeHost",
    "preparedTransactionOffset",
    "bodyCrc",
)
"""All, in their order."""

NULLABLE = frozenset({"brokerName", "tags", "uniqKey"})

_TYPES = {
    "body": "binary",
    "properties": "map<string,string>",
    "keys": "array<string>",
    **dict.fromkeys(("bornTimestamp", "storeTimestamp"), "timestamp"),
    **dict.fromkeys(("queueOffset", "physicalOffset", "preparedTransactionOffset"), "bigint"),
    **dict.fromkeys(
        ("flag", "queueId", "size", "sysFlag", "reconsumeTimes", "bodyCrc"),
        "int",
    ),
}

# Milliseconds: 0001-01-03 and the end of 9999-12-29. Python has the years 1 to 9999, in local time,
# and looks a day further when it converts one.
_FIRST_TIME, _LAST_TIME = -62_135_424_000_000, 253_402_127_999_999


def column_type(name: str) -> str:
    """Return a column's type as Spark's SQL writes it."""
    return _TYPES.get(name, "string")


def check_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns meant by names in any case.

    Raises:
        FormatError: there is no such column, or it is named twice.
    """
    known = {name.lower(): name for name in COLUMNS}
    for number, name in enumerate(names):
        if name.lower() not in known:
            near = nearest(name, COLUMNS)
            raise FormatError(f"there is no column {name[:200]!r}; the nearest one is {near}")
        if name.lower() in (other.lower() for other in names[:number]):
            raise FormatError(f"column {name} is named twice")
    return tuple(known[name.lower()] for name in names)


def chosen_columns(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns that the values of the options `columns` and `includeBody` leave.

    Raises:
        FormatError: an unknown column, or none is left.
    """
    columns = check_columns(values["columns"]) if values["columns"] else COLUMNS
    if not values["includeBody"]:
        columns = tuple(name for name in columns if name != "body")
    if not columns:
        raise FormatError("there is no column left: options columns and includeBody exclude all")
    return columns


def spark_schema(names: Iterable[str]) -> StructType:
    """Return the Spark schema of columns."""
    from pyspark.sql.types import StructField, StructType

    types = _spark_types()
    return StructType(
        [StructField(name, types[column_type(name)], name in NULLABLE) for name in names]
    )


def columns_of(schema: StructType) -> tuple[str, ...]:
    """Return the columns of a schema that was given by hand, as in `.schema("topic string")`.

    Raises:
        FormatError: a column that there is not, or of another type.
    """
    types = _spark_types()
    for field in schema.fields:
        check_columns([field.name])
        if field.name not in COLUMNS:
            raise FormatError(f"column {field.name}: write {check_columns([field.name])[0]}")
        target = column_type(field.name)
        if field.dataType.simpleString() != types[target].simpleString():
            given = field.dataType.simpleString()
            raise FormatError(f"column {field.name} is of type {target}, not {given}")
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


def to_batch(batch: Batch, schema: Any, broker_name: str | None) -> Any:
    """Return records as a `pyarrow.RecordBatch` of this Arrow schema."""
    from mqlake.dispatch.arrow import to_arrow

    made = to_arrow(batch, [name for name in schema.names if name != BROKER_NAME])
    return fitted(made, schema, broker_name)


def fitted(made: Any, schema: Any, broker_name: str | None) -> Any:
    """Return a `pyarrow.RecordBatch` that has the columns of this Arrow schema with only these.

    Args:
        made: has all columns but `brokerName`, in any order, and perhaps more.
        broker_name: the value of the column `brokerName`.
    """
    import pyarrow as pa

    arrays = []
    for field in schema:
        if field.name == BROKER_NAME:
            arrays.append(_constant(broker_name, len(made)))
        else:
            column = made.column(made.schema.get_field_index(field.name))
            arrays.append(column if column.type == field.type else _cast(column, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(column: Any, target: Any) -> Any:
    """Return a column in another type; times that Python and Spark do not have are the nearest.

    A client may send any 64 bits as the time of a message's birth.
    """
    import numpy as np
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        times = column.cast(pa.int64()).to_numpy()
        if len(times) and (times.min() < _FIRST_TIME or times.max() > _LAST_TIME):
            column = pa.array(np.clip(times, _FIRST_TIME, _LAST_TIME)).cast(column.type)
    return column.cast(target)


def _constant(text: str | None, count: int) -> Any:
    import pyarrow as pa

    return pa.repeat(pa.scalar(text, pa.string()), count)
