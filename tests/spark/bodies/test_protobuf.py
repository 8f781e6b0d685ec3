"""Protobuf bodies, without a Spark around them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    timestamp_pb2,
    wrappers_pb2,
)
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.query.bodies.protobuf import ProtobufBodies
from mqlake.spark.bodies.protobuf import ProtobufRecipe
from mqlake.spark.bodies.rows import decode_all

Field = descriptor_pb2.FieldDescriptorProto
OPTIONAL, REPEATED = Field.LABEL_OPTIONAL, Field.LABEL_REPEATED


def file_of_orders() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"])
    state = file.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="PAID", number=1)
    line = file.message_type.add(name="Line")
    line.field.add(name="sku", number=1, type=Field.TYPE_STRING, label=OPTIONAL)
    order = file.message_type.add(name="Order")
    plain = {
        "id": Field.TYPE_INT64,
        "count": Field.TYPE_UINT32,
        "total": Field.TYPE_UINT64,
        "price": Field.TYPE_DOUBLE,
        "open": Field.TYPE_BOOL,
        "note": Field.TYPE_STRING,
        "raw": Field.TYPE_BYTES,
    }
    for number, (name, kind) in enumerate(plain.items(), 1):
        order.field.add(name=name, number=number, type=kind, label=OPTIONAL)
    order.field.add(
        name="state", number=8, type=Field.TYPE_ENUM, type_name=".shop.State", label=OPTIONAL
    )
    messages = {
        "at": (".google.protobuf.Timestamp", OPTIONAL),
        "weight": (".google.protobuf.Int32Value", OPTIONAL),
        "first": (".shop.Line", OPTIONAL),
        "lines": (".shop.Line", REPEATED),
        "notes": (".shop.Order.NotesEntry", REPEATED),
    }
    for number, (name, (kind, label)) in enumerate(messages.items(), 9):
        order.field.add(
            name=name, number=number, type=Field.TYPE_MESSAGE, type_name=kind, label=label
        )
    order.oneof_decl.add(name="_maybe")
    order.field.add(
        name="maybe",
        number=14,
        type=Field.TYPE_INT32,
        label=OPTIONAL,
        proto3_optional=True,
        oneof_index=0,
    )
    entry = order.nested_type.add(name="NotesEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=OPTIONAL)
    entry.field.add(name="value", number=2, type=Field.TYPE_INT32, label=OPTIONAL)
    node = file.message_type.add(name="Node")
    node.field.add(
        name="next", number=1, type=Field.TYPE_MESSAGE, type_name=".shop.Node", label=OPTIONAL
    )
    return file


def descriptors() -> bytes:
    found = descriptor_pb2.FileDescriptorSet()
    for module in (timestamp_pb2, wrappers_pb2):
        module.DESCRIPTOR.CopyToProto(found.file.add())
    found.file.append(file_of_orders())
    return found.SerializeToString()


def order(**fields: Any) -> bytes:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors()).file:
        pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    return kind(**fields).SerializeToString()


RECIPE = ProtobufRecipe(descriptors(), "shop.Order", framed=False)
DEFAULTS: dict[str, Any] = {
    "id": 0,
    "count": 0,
    "total": Decimal(0),
    "price": 0.0,
    "open": False,
    "note": "",
    "raw": b"",
    "state": "NEW",
    "at": None,
    "weight": None,
    "first": None,
    "lines": [],
    "notes": {},
    "maybe": None,
}


def decoded(recipe: ProtobufRecipe, *bodies: bytes | None) -> list[tuple[Any, str | None]]:
    found = decode_all(pa.array(bodies, pa.binary()), recipe, recipe.columns())
    rows = found.to_pylist(maps_as_pydicts="strict")
    return [(row["value"], row["fault"]) for row in rows]


def test_every_type() -> None:
    assert RECIPE.columns().simpleString() == (
        "struct<id:bigint,count:bigint,total:decimal(20,0),price:double,open:boolean,note:string,"
        "raw:binary,state:string,at:timestamp,weight:int,first:struct<sku:string>,"
        "lines:array<struct<sku:string>>,notes:map<string,int>,maybe:int>"
    )
    body = order(
        id=-5,
        count=(1 << 32) - 1,
        total=(1 << 64) - 1,
        note="é",
        state=1,
        at={"seconds": 1_800_000_000, "nanos": 123_456_789},
        weight={"value": 0},
        first={"sku": ""},
        lines=[{"sku": "a"}, {"sku": "b"}],
        notes={"k": 7},
        maybe=0,
    )
    assert decoded(RECIPE, body, b"", None) == [
        (
            DEFAULTS
            | {
                "id": -5,
                "count": (1 << 32) - 1,
                "total": Decimal((1 << 64) - 1),
                "note": "é",
                "state": "PAID",
                "at": datetime.fromtimestamp(1_800_000_000, UTC).replace(microsecond=123456),
                "weight": 0,
                "first": {"sku": ""},
                "lines": [{"sku": "a"}, {"sku": "b"}],
                "notes": {"k": 7},
                "maybe": 0,
            },
            None,
        ),
        (DEFAULTS, None),
        (None, None),
    ]


def test_unknown_fields_and_unknown_names_of_enums() -> None:
    unknown = bytes([15 << 3, 1]) + b"\xfa\x3e\x01x"  # fields 15 and 1007
    assert decoded(RECIPE, order(state=77) + unknown) == [(DEFAULTS | {"state": "77"}, None)]


def test_a_field_of_another_wire_type_is_as_if_missing() -> None:
    assert decoded(RECIPE, b"\x0a\x01x") == [(DEFAULTS, None)]  # id as text


def test_damaged_bodies_have_a_fault() -> None:
    bodies = [order(note="text")[:-1], b"\xff\xff", b"\x32\x02\xff\xfe"]
    late = order(at={"seconds": 1 << 62})
    assert all(value is None and fault for value, fault in decoded(RECIPE, *bodies, late))


def test_confluents_framing() -> None:
    recipe = RECIPE._replace(framed=True)
    body = order(id=3)
    prefix = b"\0\0\0\0\1"
    found = decoded(
        recipe,
        prefix + b"\0" + body,
        prefix + b"\4\2\0" + body,
        body,
        prefix,
        prefix + b"\xff" * 20,
    )
    wanted = DEFAULTS | {"id": 3}
    assert found[:2] == [(wanted, None), (wanted, None)]
    assert [fault for _, fault in found[2:]] == [
        "the body lacks Confluent's prefix",
        "the body lacks Confluent's prefix",
        "Confluent's prefix is truncated",
    ]


def test_what_has_no_columns_is_refused() -> None:
    with pytest.raises(FormatError, match=r"no message 'shop\.Oder'; the nearest is shop\.Order"):
        RECIPE._replace(message="shop.Oder").columns()
    with pytest.raises(FormatError, match="not a descriptor file"):
        RECIPE._replace(descriptors=b"\xff").columns()
    with pytest.raises(FormatError, match=r"message shop\.Node contains itself"):
        RECIPE._replace(message="shop.Node").columns()


@given(st.binary(max_size=100), st.booleans())
def test_any_bytes_are_a_value_or_a_fault(body: bytes, framed: bool) -> None:
    [(value, fault)] = decoded(RECIPE._replace(framed=framed), body)
    assert (value is None) != (fault is None)


def test_messages_that_contain_others_twice_are_decoded_at_once() -> None:
    """Functions for each place where a message may be would need more memory than there is."""
    found = descriptor_pb2.FileDescriptorSet()
    file = found.file.add(name="deep.proto", package="deep", syntax="proto3")
    for number in range(60):
        message = file.message_type.add(name=f"M{number}")
        message.field.add(name="id", number=3, type=Field.TYPE_INT32, label=OPTIONAL)
        kind = f".deep.M{(number + 1) % 60}"
        for at, name in enumerate(("a", "b"), 1):
            message.field.add(
                name=name, number=at, type=Field.TYPE_MESSAGE, type_name=kind, label=OPTIONAL
            )
    decode = ProtobufBodies(found.SerializeToString(), "deep.M0", framed=False).decoder()
    inner = {"a": None, "b": None, "id": 7}
    assert decode(b"\x12\x02\x18\x07") == {"a": None, "b": inner, "id": 0}
