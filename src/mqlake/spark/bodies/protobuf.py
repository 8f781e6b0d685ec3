"""Protobuf bodies as columns of Spark."""

# pyright: basic
# Message classes are created at run time.

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlake.errors import FormatError
from mqlake.query.bodies.protobuf import (
    ENUM,
    MESSAGE,
    TIMESTAMP,
    WRAPPERS,
    ProtobufBodies,
    check_library,
    descriptor_of,
    is_map,
)
from mqlake.spark.bodies import rows
from mqlake.spark.bodies.column_types import simple_type
from mqlake.spark.bodies.decoded import DecodedBody

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

_UINT64 = (4, 6)
_UINT32 = (7, 13)
_TYPES = {1: "double", 2: "float", 3: "bigint", 5: "int", 8: "boolean", 9: "string", 12: "binary"}
_TYPES |= {15: "int", 16: "bigint", 17: "int", 18: "bigint", ENUM: "string"}
_TYPES |= dict.fromkeys(_UINT32, "bigint") | dict.fromkeys(_UINT64, "decimal(20,0)")
"""Spark's types by the type numbers of FieldDescriptorProto; groups have none."""


class ProtobufRecipe(ProtobufBodies):
    """The same, with Spark's columns."""

    def columns(self) -> StructType:
        """Return the columns of the message."""
        return _struct(descriptor_of(self.descriptors, self.message), ())


def decoded(
    body: Column, schema: str | bytes | Path | None, message: str | None, framing: str
) -> DecodedBody:
    """Return the decoded messages of a column of bodies."""
    check_library()
    if schema is None or message is None:
        raise FormatError(
            "Protobuf bodies need schema, a descriptor file, and message, a full name"
        )
    recipe = ProtobufRecipe(_bytes(schema), message, framing == "confluent")
    return rows.decoded(body, recipe)


def _bytes(schema: str | bytes | Path) -> bytes:
    if isinstance(schema, bytes):
        return schema
    try:
        return Path(schema).read_bytes()
    except OSError as error:
        raise FormatError(f"descriptors {str(schema)[:200]!r}: {error.strerror}") from None


def _struct(descriptor: Any, inside: tuple[str, ...]) -> StructType:
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if descriptor.full_name in inside:
        raise FormatError(f"message {descriptor.full_name} contains itself: it has no column type")
    inside = (*inside, descriptor.full_name)
    found: list[StructField] = []
    for field in descriptor.fields:
        if is_map(field):
            entry = field.message_type.fields_by_name
            kind = MapType(_type(entry["key"], inside), _type(entry["value"], inside))
        elif field.is_repeated:
            kind = ArrayType(_type(field, inside))
        else:
            kind = _type(field, inside)
        found.append(StructField(field.name, kind))
    return StructType(found)


def _type(field: Any, inside: tuple[str, ...]) -> DataType:
    if field.type == MESSAGE:
        kind = field.message_type
        if kind.full_name == TIMESTAMP:
            return simple_type("timestamp")
        if kind.full_name in WRAPPERS:
            return _type(kind.fields_by_name["value"], inside)
        return _struct(kind, inside)
    if field.type not in _TYPES:
        raise FormatError(f"field {field.full_name} is a group: it has no column type")
    return simple_type(_TYPES[field.type])
