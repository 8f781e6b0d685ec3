"""Protobuf bodies, and the descriptors by which they are read."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

NAME = "shop.Parcel"
_Field = descriptor_pb2.FieldDescriptorProto


def _descriptors() -> descriptor_pb2.FileDescriptorSet:
    found = descriptor_pb2.FileDescriptorSet()
    file = found.file.add(name="shop.proto", package="shop", syntax="proto3")
    state = file.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="SENT", number=1)
    parcel = file.message_type.add(name="Parcel")
    kinds = (("id", _Field.TYPE_INT64, ""), ("note", _Field.TYPE_STRING, ""))
    fields = (*kinds, ("state", _Field.TYPE_ENUM, ".shop.State"))
    for number, (name, kind, type_name) in enumerate(fields, 1):
        field = parcel.field.add(name=name, number=number, type=kind)
        field.label = _Field.LABEL_REPEATED if name == "note" else _Field.LABEL_OPTIONAL
        if type_name:
            field.type_name = type_name
    return found


def descriptors() -> bytes:
    """Return what `protoc --descriptor_set_out` writes."""
    return _descriptors().SerializeToString()


def parcel(**fields: Any) -> bytes:
    """Return a body."""
    pool = descriptor_pool.DescriptorPool()
    for file in _descriptors().file:
        pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(NAME))
    return kind(**fields).SerializeToString()
