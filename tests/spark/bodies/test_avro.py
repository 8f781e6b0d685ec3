"""Avro bodies, without a Spark around them."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError, JobError
from mqlake.query.bodies import registry as registry_module
from mqlake.query.bodies.avro import AvroBodies
from mqlake.spark.bodies.avro import AvroRecipe
from mqlake.spark.bodies.rows import decode_all
from tests.spark.bodies.registry import running

fastavro = pytest.importorskip("fastavro", reason="Avro needs fastavro: pip install 'mqlake[avro]'")

ADDRESS = {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]}
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        },
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "notes", "type": {"type": "map", "values": ["null", "string"]}},
        {"name": "home", "type": ADDRESS},
        {"name": "work", "type": ["null", "Address"]},
        {"name": "counts", "type": {"type": "array", "items": "int"}},
        {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 2}},
    ],
}
VALUE: dict[str, Any] = {
    "id": 1 << 40,
    "price": Decimal("12.34"),
    "at": datetime(2026, 1, 2, 3, 4, 5, 678000, UTC),
    "day": date(2026, 1, 2),
    "state": "PAID",
    "notes": {"a": "b", "c": None},
    "home": {"city": "Łódź"},
    "work": {"city": "Köln"},
    "counts": [1, -2],
    "code": b"\0\xff",
}


def record(*fields: tuple[str, Any] | tuple[str, Any, Any]) -> dict[str, Any]:
    made = [
        {"name": one[0], "type": one[1]} | ({"default": one[2]} if len(one) == 3 else {})
        for one in fields
    ]
    return {"type": "record", "name": "R", "fields": made}


def encoded(schema: dict[str, Any], value: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    fastavro.schemaless_writer(stream, parsed, value)
    return stream.getvalue()


def recipe(reader: Any, writer: Any = None) -> AvroRecipe:
    return AvroRecipe(json.dumps(reader), json.dumps(writer or reader), None, framed=False)


def decoded(made: AvroRecipe, *bodies: bytes | None) -> list[tuple[Any, str | None]]:
    found = decode_all(pa.array(bodies, pa.binary()), made, made.columns())
    rows = found.to_pylist(maps_as_pydicts="strict")
    return [(row["value"], row["fault"]) for row in rows]


def test_every_type() -> None:
    made = recipe(ORDER)
    assert made.columns().simpleString() == (
        "struct<id:bigint,price:decimal(10,2),at:timestamp,day:date,state:string,"
        "notes:map<string,string>,home:struct<city:string>,work:struct<city:string>,"
        "counts:array<int>,code:binary>"
    )
    without_work = VALUE | {"work": None}
    bodies = [encoded(ORDER, value) for value in (VALUE, without_work)]
    assert decoded(made, *bodies, None) == [(VALUE, None), (without_work, None), (None, None)]


def test_damaged_bodies_have_a_fault() -> None:
    body = encoded(ORDER, VALUE)
    damaged = [body[:-1], body + b"\0", b"", b"\xff" * 30]
    found = decoded(recipe(ORDER), *damaged, body)
    assert [value for value, _ in found] == [None] * len(damaged) + [VALUE]
    assert all(fault for _, fault in found[:-1])
    assert "1 bytes follow the Avro datum" in str(found[1][1])


def test_schemas_evolve() -> None:
    writer = record(("a", "int"), ("gone", "string"))
    reader = record(
        ("a", "long"), ("with_default", "string", "x"), ("optional", ["string", "null"])
    )
    body = encoded(writer, {"a": 5, "gone": "text"})
    wanted = {"a": 5, "with_default": "x", "optional": None}
    assert decoded(recipe(reader, writer), body) == [(wanted, None)]


@pytest.mark.parametrize(
    ("reader", "writer", "value"),
    [
        (record(("a", "int")), record(("a", "string")), {"a": "text"}),
        (record(("a", "int"), ("b", "string")), record(("a", "int")), {"a": 1}),
    ],
    ids=["another type", "a field that is missing and may not be null"],
)
def test_what_cannot_be_resolved_is_a_fault(reader: Any, writer: Any, value: Any) -> None:
    [(found, fault)] = decoded(recipe(reader, writer), encoded(writer, value))
    assert found is None
    assert "SchemaResolutionError" in str(fault)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "not an Avro schema"),
        ('{"type": "recor", "name": "R"}', "not an Avro schema"),
        ('"string"', "is not a record"),
        (json.dumps(record(("a", ["int", "string"]))), "a: a union of several types"),
        (json.dumps(record(("next", ["null", "R"]))), "type R contains itself"),
        (json.dumps(record(("a", {"type": "array", "items": "null"}))), "without bytes"),
    ],
)
def test_schemas_without_columns_are_refused(schema: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        AvroRecipe(schema, schema, None, framed=False).columns()


def test_decimals_of_too_many_digits_are_faults_at_once() -> None:
    """To convert this one to a decimal would take hours."""
    price = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    size = 4 << 20
    long = b"\x80\x80\x80\x04" + b"\x7f" * size
    wrong = encoded(record(("price", "bytes")), {"price": (10**10).to_bytes(8, "big")})
    least = encoded(
        record(("price", "bytes")), {"price": (1 - 10**10).to_bytes(8, "big", signed=True)}
    )
    found = decoded(recipe(record(("price", price))), long, wrong, least)
    assert [str(fault) for _, fault in found[:2]] == [
        "ValueError: a decimal has more than 10 digits"
    ] * 2
    assert found[2] == ({"price": Decimal("-99999999.99")}, None)


def doubled(depth: int, inner: Any) -> dict[str, Any]:
    """Return a small schema, in which each type has the next one twice."""
    found = record(("a", inner)) | {"name": "R0"}
    for number in range(depth):
        parts = (("a", found), ("b", f"R{number}"))
        found = record(*parts) | {"name": f"R{number + 1}"}
    return found


@pytest.mark.parametrize("inner", ["int", "null", {"type": "array", "items": "int"}])
def test_types_that_contain_others_twice_are_refused_at_once(inner: Any) -> None:
    schema = doubled(60, inner)
    for whole in (schema, record(("all", {"type": "array", "items": schema}))):
        with pytest.raises(FormatError, match="more than 10,000 types"):
            AvroBodies(json.dumps(whole), None, None, framed=False).decoder()
    assert AvroBodies(json.dumps(doubled(5, inner)), None, None, framed=False).decoder()


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_fault(body: bytes) -> None:
    [(value, fault)] = decoded(recipe(ORDER), body)
    assert (value is None) != (fault is None)


def framed(number: int, body: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body


def test_each_body_names_its_schema_in_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_TIMEOUT", 60.0)  # a request is repeated afterwards
    old, new = record(("a", "int")), record(("a", "int"), ("b", ["null", "string"]))
    schemas: dict[int, dict[str, object]] = {
        1: {"schema": json.dumps(old)},
        2: {"schema": json.dumps(new)},
        3: {"schema": "{}", "schemaType": "JSON"},
        4: {"schema": json.dumps(new), "references": [{"name": "x"}]},
    }
    with running(schemas, {"Orders-value": 2}) as server:
        url = server.url.replace("//", "//user:secret@")
        reader = registry_module.Registry(url).latest("Orders-value")
        made = AvroRecipe(reader, None, url, framed=True)
        good = [
            framed(1, encoded(old, {"a": 1})),
            framed(2, encoded(new, {"a": 2, "b": "x"})),
            framed(1, encoded(old, {"a": 3})),
        ]
        bad = [framed(9, b""), framed(3, b""), framed(4, b""), b"\0\0\0", b"{}" * 9]
        found = decoded(made, *good, *bad, *good)
    rows = [({"a": 1, "b": None}, None), ({"a": 2, "b": "x"}, None), ({"a": 3, "b": None}, None)]
    assert found[:3] == rows
    assert found[-3:] == rows
    assert [fault for _, fault in found[3:-3]] == [
        "the registry has no schema 9",
        "schema 3 has type JSON, not AVRO",
        "schema 4 refers to other subjects: pass the whole schema",
        "the body lacks Confluent's prefix",
        "the body lacks Confluent's prefix",
    ]
    # A number is asked for once, whether it exists or not.
    assert sorted(server.asked) == [
        *(f"/schemas/ids/{number}" for number in (1, 2, 3, 4, 9)),
        "/subjects/Orders-value/versions/latest",
    ]
    assert set(server.authorizations) == {"Basic dXNlcjpzZWNyZXQ="}


def test_a_registry_that_does_not_answer_fails_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module.time, "sleep", lambda _: None)
    with running({}) as server:
        url = server.url
    made = AvroRecipe(json.dumps(record(("a", "int"))), None, url, framed=True)
    with pytest.raises(JobError, match="the schema registry does not answer"):
        decoded(made, framed(1, b"\2"))


def test_a_registry_without_an_address_is_refused() -> None:
    with pytest.raises(FormatError, match="'file:///etc' is not the URL of a schema registry"):
        registry_module.Registry("file:///etc")
