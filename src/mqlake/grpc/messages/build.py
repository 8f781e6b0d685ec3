"""Classes of the messages and enums, from the tables.

They are in a descriptor pool of their own: RocketMQ's Python client registers the same names in the
default pool, and one pool refuses a second definition. So both can be used in one process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final, NamedTuple

from google.protobuf import descriptor_pb2, duration_pb2, timestamp_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from mqlake.grpc.messages.tables import ENUMS, MESSAGES

PACKAGE: Final = "apache.rocketmq.v2"
_FILE: Final = "apache/rocketmq/v2/messages.proto"
_MODULE: Final = "mqlake.grpc.messages"
WELL_KNOWN: Final = {"Duration": duration_pb2, "Timestamp": timestamp_pb2}
"""Messages of Protocol Buffers themselves, and where the default pool has them."""
MAP: Final = "map<string, string>"
_FIELD: Final = re.compile(r"(\d+) (?:(\w+)/)?(\w+) ([?*]?)(map<string, string>|\w+)")
_SCALARS: Final = {
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "float": descriptor_pb2.FieldDescriptorProto.TYPE_FLOAT,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
}


class MessageField(NamedTuple):
    """One row of the table of messages.

    Attributes:
        number: its number on the wire.
        oneof: the oneof that it belongs to; "" if none.
        name: its name.
        label: "?" if it may be unset, "*" if it is repeated, otherwise "".
        kind: a scalar, an enum, a message or `MAP`.
    """

    number: int
    oneof: str
    name: str
    label: str
    kind: str


def fields_of(message: str) -> Iterator[MessageField]:
    """Yield the fields of a message."""
    for row in MESSAGES[message]:
        match = _FIELD.fullmatch(row)
        assert match is not None, row
        number, oneof, name, label, kind = match.groups()
        yield MessageField(int(number), oneof or "", name, label, kind)


def classes() -> dict[str, Any]:
    """Return the classes of all enums and messages by name, with `Duration` and `Timestamp`."""
    pool = DescriptorPool()
    for module in WELL_KNOWN.values():
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(_file().SerializeToString())
    found: dict[str, Any] = {}
    for name in MESSAGES:
        found[name] = GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
    for name in WELL_KNOWN:
        found[name] = GetMessageClass(pool.FindMessageTypeByName(f"google.protobuf.{name}"))
    for name, values in ENUMS.items():
        found[name] = IntEnum(name, values, module=_MODULE)
    return found


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name=_FILE, package=PACKAGE, syntax="proto3")
    file.dependency.extend(module.DESCRIPTOR.name for module in WELL_KNOWN.values())
    for name, values in ENUMS.items():
        enum = file.enum_type.add(name=name)
        for value, number in values.items():
            enum.value.add(name=value, number=number)
    for name in MESSAGES:
        _add_fields(file.message_type.add(name=name))
    return file


def _add_fields(message: descriptor_pb2.DescriptorProto) -> None:
    oneofs: dict[str, int] = {}
    fields = list(fields_of(message.name))
    # Those of fields that may be unset come after all others.
    for oneof in [field.oneof for field in fields if field.oneof] + [
        f"_{field.name}" for field in fields if field.label == "?"
    ]:
        if oneof not in oneofs:
            oneofs[oneof] = len(oneofs)
            message.oneof_decl.add(name=oneof)
    for field in fields:
        added = message.field.add(name=field.name, number=field.number)
        is_repeated = field.label == "*" or field.kind == MAP
        added.label = added.LABEL_REPEATED if is_repeated else added.LABEL_OPTIONAL
        if field.label == "?":
            added.proto3_optional = True
        if oneof := field.oneof or ("_" + field.name if field.label == "?" else ""):
            added.oneof_index = oneofs[oneof]
        _set_type(added, field, message)


def _set_type(
    added: descriptor_pb2.FieldDescriptorProto,
    field: MessageField,
    message: descriptor_pb2.DescriptorProto,
) -> None:
    if field.kind in _SCALARS:
        added.type = _SCALARS[field.kind]
    elif field.kind in ENUMS:
        added.type = added.TYPE_ENUM
        added.type_name = f".{PACKAGE}.{field.kind}"
    elif field.kind == MAP:
        added.type = added.TYPE_MESSAGE
        added.type_name = f".{PACKAGE}.{message.name}.{_add_entry(field.name, message)}"
    else:
        added.type = added.TYPE_MESSAGE
        package = "google.protobuf" if field.kind in WELL_KNOWN else PACKAGE
        added.type_name = f".{package}.{field.kind}"


def _add_entry(field: str, message: descriptor_pb2.DescriptorProto) -> str:
    """Add the message of a map's entries; return its name, as Protocol Buffers requires it."""
    name = "".join(word.capitalize() for word in field.split("_")) + "Entry"
    entry = message.nested_type.add(name=name)
    entry.options.map_entry = True
    for number, part in enumerate(("key", "value"), 1):
        added = entry.field.add(name=part, number=number)
        added.label, added.type = added.LABEL_OPTIONAL, added.TYPE_STRING
    return name
