"""Spark's columns of an Avro schema."""

# pyright: basic
# Schemas are arbitrary JSON.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlake.errors import FormatError
from mqlake.query.bodies.avro_schema import LOGICAL, PRIMITIVES
from mqlake.spark.bodies.column_types import simple_type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_MAX_PRECISION = 38
_WIDER = [("int", "long"), ("float", "double")]


def avro_columns(schema: Any) -> StructType:
    """Return the columns of a record.

    Raises:
        FormatError: the schema is not a record, or has a type without a column type.
    """
    from pyspark.sql.types import StructType

    if not isinstance(schema, dict) or schema["type"] != "record":
        raise FormatError("the Avro schema of bodies is not a record")
    found = _type(schema, "")
    assert isinstance(found, StructType)
    return found


def _type(schema: Any, where: str) -> DataType:
    from pyspark.sql import types

    if isinstance(schema, list):
        return _union(schema, where)
    if isinstance(schema, str):
        return simple_type(PRIMITIVES.get(schema, "void"))
    kind = schema["type"]
    if schema.get("logicalType") == "decimal":
        if schema["precision"] > _MAX_PRECISION:
            raise FormatError(f"{where}: Spark's decimals have at most {_MAX_PRECISION} digits")
        return types.DecimalType(schema["precision"], schema.get("scale", 0))
    if kind == "record":
        fields = [
            types.StructField(field["name"], _type(field["type"], f"{where}{field['name']}."))
            for field in schema["fields"]
        ]
        return types.StructType(fields)
    if kind == "array":
        return types.ArrayType(_type(schema["items"], where))
    if kind == "map":
        return types.MapType(types.StringType(), _type(schema["values"], where))
    if kind in ("enum", "fixed"):
        return simple_type("string" if kind == "enum" else "binary")
    return simple_type(LOGICAL.get((kind, schema.get("logicalType")), PRIMITIVES.get(kind, "void")))


def _union(schema: list[Any], where: str) -> DataType:
    others = [one for one in schema if one != "null"]
    if len(others) == 1:
        return _type(others[0], where)
    for narrow, wide in _WIDER:
        if set(map(str, others)) == {narrow, wide}:
            return simple_type(PRIMITIVES[wide])
    raise FormatError(
        f"{where.rstrip('.') or 'the schema'}: a union of several types has no column type; "
        "use a reader's schema without it"
    )
