"""Protobuf bodies, decoded by Google's library with a descriptor file."""

# pyright: basic
# Message classes are created at run time.

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlake.errors import FormatError, JobError
from mqlake.query.reading.parsing import nearest
from mqlake.spark.bodies import rows
from mqlake.spark.bodies.column_types import simple_type
from mqlake.spark.bodies.decoded import CONFLUENT_PREFIX, Decoded

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

Value = Callable[[Any], Any]

_TIMESTAMP = "google.protobuf.Timestamp"
_WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_UINT64 = (4, 6)
_UINT32 = (7, 13)
_ENUM = 14
_MESSAGE = 11
_TYPES = {1: "double", 2: "float", 3: "bigint", 5: "int", 8: "boolean", 9: "string", 12: "binary"}
_TYPES |= {15: "int", 16: "bigint", 17: "int", 18: "bigint", _ENUM: "string"}
_TYPES |= dict.fromkeys(_UINT32, "bigint") | dict.fromkeys(_UINT64, "decimal(20,0)")
"""Spark's types by the type numbers of FieldDescriptorProto; groups have none."""

_MOST_BYTES_OF_VARINT = 10
_MICROSECONDS = 10**6
_LAST_SECOND = (1 << 63) // _MICROSECONDS - 1


class ProtobufRecipe(NamedTuple):
    """Descriptors (a FileDescriptorSet), the message's full name, and whether bodies have
    Confluent's prefix.
    """

    descriptors: bytes
    message: str
    framed: bool

    def columns(self) -> StructType:
        """Return the columns of the message."""
        return _struct(_descriptor(self.descriptors, self.message), ())

    def decoder(self) -> Callable[[bytes], dict[str, Any] | None]:
        """Return the decoder of a body; each process has one for each recipe."""
        return _decoder(self)


def decoded(
    body: Column, schema: str | bytes | Path | None, message: str | None, framing: str
) -> Decoded:
    """Return the decoded messages of a column of bodies."""
    _library()
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


@lru_cache(maxsize=64)
def _descriptor(descriptors: bytes, message: str) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    pool = descriptor_pool.DescriptorPool()
    names: list[str] = []
    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
        for file in found.file:
            pool.Add(file)
            names += [".".join(filter(None, (file.package, one.name))) for one in file.message_type]
        return pool.FindMessageTypeByName(message)
    except (DecodeError, TypeError) as error:
        raise FormatError(
            f"not a descriptor file (protoc --include_imports --descriptor_set_out): {error}"
        ) from None
    except KeyError:
        near = f"; the nearest is {nearest(message, names)}" if names else ""
        raise FormatError(f"the descriptors have no message {message[:200]!r}{near}") from None


@lru_cache(maxsize=64)
def _decoder(recipe: ProtobufRecipe) -> Callable[[bytes], dict[str, Any] | None]:
    from google.protobuf import message_factory
    from google.protobuf.message import DecodeError

    descriptor = _descriptor(recipe.descriptors, recipe.message)
    parse = message_factory.GetMessageClass(descriptor).FromString
    values = _message(descriptor)
    framed = recipe.framed

    def decode(body: bytes) -> dict[str, Any] | None:
        try:
            return values(parse(_unframed(body) if framed else body))
        except DecodeError as error:
            raise FormatError(str(error)) from None

    return decode


def _unframed(body: bytes) -> bytes:
    """Return the bytes after Confluent's prefix and the message's path in its file."""
    if len(body) <= CONFLUENT_PREFIX or body[0]:
        raise FormatError("the body lacks Confluent's prefix")
    count, at = _varint(body, CONFLUENT_PREFIX)
    for _ in range(min(count >> 1, len(body))):
        _, at = _varint(body, at)
    return body[at:]


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = 0
    for number, byte in enumerate(body[at : at + _MOST_BYTES_OF_VARINT]):
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return value, at + number + 1
    raise FormatError("Confluent's prefix is truncated")


def _message(descriptor: Any) -> Value:
    """Return a function that converts a message to a dictionary."""
    fields = [(field.name, _field(field)) for field in descriptor.fields]
    return lambda message: {name: get(message) for name, get in fields}


def _field(field: Any) -> Value:
    name = field.name
    if _is_map(field):
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name
        of_key, of_value = _converted(key), _converted(value["value"])
        return lambda message: [
            (of_key(one), of_value(other)) for one, other in getattr(message, name).items()
        ]
    convert = _converted(field)
    if field.is_repeated:
        return lambda message: [convert(one) for one in getattr(message, name)]
    if field.has_presence:
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    return lambda message: convert(getattr(message, name))


def _converted(field: Any) -> Value:
    """Return a function that converts one value of a field to Arrow's value."""
    if field.type == _ENUM:
        names = {number: one.name for number, one in field.enum_type.values_by_number.items()}
        return lambda value: names.get(value) or str(value)
    if field.type != _MESSAGE:
        return _as_it_is
    kind = field.message_type.full_name
    if kind == _TIMESTAMP:
        return _microseconds
    if kind in _WRAPPERS:
        return lambda value: value.value
    return _message(field.message_type)


def _as_it_is(value: Any) -> Any:
    return value


def _microseconds(time: Any) -> int:
    if abs(time.seconds) > _LAST_SECOND:
        raise FormatError(f"the time {time.seconds} s is out of range for a timestamp")
    return time.seconds * _MICROSECONDS + time.nanos // 1000


def _is_map(field: Any) -> bool:
    return field.type == _MESSAGE and field.message_type.GetOptions().map_entry


def _struct(descriptor: Any, inside: tuple[str, ...]) -> StructType:
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if descriptor.full_name in inside:
        raise FormatError(f"message {descriptor.full_name} contains itself: it has no column type")
    inside = (*inside, descriptor.full_name)
    found: list[StructField] = []
    for field in descriptor.fields:
        if _is_map(field):
            entry = field.message_type.fields_by_name
            kind = MapType(_type(entry["key"], inside), _type(entry["value"], inside))
        elif field.is_repeated:
            kind = ArrayType(_type(field, inside))
        else:
            kind = _type(field, inside)
        found.append(StructField(field.name, kind))
    return StructType(found)


def _type(field: Any, inside: tuple[str, ...]) -> DataType:
    if field.type == _MESSAGE:
        kind = field.message_type
        if kind.full_name == _TIMESTAMP:
            return simple_type("timestamp")
        if kind.full_name in _WRAPPERS:
            return _type(kind.fields_by_name["value"], inside)
        return _struct(kind, inside)
    if field.type not in _TYPES:
        raise FormatError(f"field {field.full_name} is a group: it has no column type")
    return simple_type(_TYPES[field.type])


def _library() -> None:
    try:
        import google.protobuf  # noqa: F401
    except ImportError:
        raise JobError("Protobuf bodies need protobuf: pip install 'mqlake[protobuf]'") from None
