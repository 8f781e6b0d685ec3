"""Protobuf bodies, decoded by Google's library with a descriptor file."""

# pyright: basic
# Message classes are created at run time.

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from mqlake.errors import FormatError, JobError
from mqlake.query.bodies.framing import PREFIX
from mqlake.query.reading.parsing import suggestion

Value = Callable[[Any], Any]

TIMESTAMP = "google.protobuf.Timestamp"
WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
ENUM = 14
MESSAGE = 11

_MOST_BYTES_OF_VARINT = 10
_MICROSECONDS = 10**6
_LAST_SECOND = (1 << 63) // _MICROSECONDS - 1


class ProtobufBodies(NamedTuple):
    """Descriptors (a FileDescriptorSet), the message's full name, and whether bodies have
    Confluent's prefix.
    """

    descriptors: bytes
    message: str
    framed: bool

    def decoder(self) -> Callable[[bytes], dict[str, Any] | None]:
        """Return the decoder of a body; each process has one for each recipe."""
        return _decoder(*self)


@lru_cache(maxsize=64)
def descriptor_of(descriptors: bytes, message: str) -> Any:
    """Return the descriptor of a message; raises FormatError."""
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
        near = f"; {suggestion(message, names)}" if names else ""
        raise FormatError(f"the descriptors have no message {message[:200]!r}{near}") from None


@lru_cache(maxsize=64)
def _decoder(
    descriptors: bytes, message: str, framed: bool
) -> Callable[[bytes], dict[str, Any] | None]:
    from google.protobuf import message_factory
    from google.protobuf.message import DecodeError

    descriptor = descriptor_of(descriptors, message)
    parse = message_factory.GetMessageClass(descriptor).FromString
    values = _message(descriptor, {})

    def decode(body: bytes) -> dict[str, Any] | None:
        try:
            return values(parse(_unframed(body) if framed else body))
        except DecodeError as error:
            raise FormatError(str(error)) from None

    return decode


def _unframed(body: bytes) -> bytes:
    """Return the bytes after Confluent's prefix and the message's path in its file."""
    if len(body) <= PREFIX or body[0]:
        raise FormatError("the body lacks Confluent's prefix")
    count, at = _varint(body, PREFIX)
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


def _message(descriptor: Any, known: dict[str, Value]) -> Value:
    """Return a function that converts a message to a dictionary.

    Args:
        known: functions by the names of messages: each is made once, however often it is used.
    """
    if descriptor.full_name in known:
        return known[descriptor.full_name]
    fields: list[tuple[str, Value]] = []

    def converted(message: Any) -> dict[str, Any]:
        return {name: get(message) for name, get in fields}

    known[descriptor.full_name] = converted
    fields += ((field.name, _field(field, known)) for field in descriptor.fields)
    return converted


def _field(field: Any, known: dict[str, Value]) -> Value:
    name = field.name
    if is_map(field):
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name
        of_key, of_value = _converted(key, known), _converted(value["value"], known)
        return lambda message: [
            (of_key(one), of_value(other)) for one, other in getattr(message, name).items()
        ]
    convert = _converted(field, known)
    if field.is_repeated:
        return lambda message: [convert(one) for one in getattr(message, name)]
    if field.has_presence:
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    return lambda message: convert(getattr(message, name))


def _converted(field: Any, known: dict[str, Value]) -> Value:
    """Return a function that converts one value of a field to Arrow's value."""
    if field.type == ENUM:
        names = {number: one.name for number, one in field.enum_type.values_by_number.items()}
        return lambda value: names.get(value) or str(value)
    if field.type != MESSAGE:
        return _as_it_is
    kind = field.message_type.full_name
    if kind == TIMESTAMP:
        return _microseconds
    if kind in WRAPPERS:
        return lambda value: value.value
    return _message(field.message_type, known)


def _as_it_is(value: Any) -> Any:
    return value


def _microseconds(time: Any) -> int:
    if abs(time.seconds) > _LAST_SECOND:
        raise FormatError(f"the time {time.seconds} s is out of range for a timestamp")
    return time.seconds * _MICROSECONDS + time.nanos // 1000


def is_map(field: Any) -> bool:
    """Return whether a field is a map."""
    return field.type == MESSAGE and field.message_type.GetOptions().map_entry


def check_library() -> None:
    """Raise JobError if the package protobuf is missing."""
    try:
        import google.protobuf  # noqa: F401
    except ImportError:
        raise JobError("Protobuf bodies need protobuf: pip install 'mqlake[protobuf]'") from None
