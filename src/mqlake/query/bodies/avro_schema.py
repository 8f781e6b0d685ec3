"""Avro schemas: read and check them."""

# pyright: basic
# Schemas are arbitrary JSON.

from __future__ import annotations

import json
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import Any

from mqlake.errors import FormatError

PRIMITIVES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
"""SQL types by the names of primitive types."""

LOGICAL = {
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp_ntz",
    ("long", "local-timestamp-micros"): "timestamp_ntz",
    ("string", "uuid"): "string",
}
"""SQL types by primitive and logical type."""

_MOST_TYPES = 10_000
"""Types that a schema may have, with each named type counted wherever it is used."""

_DECIMAL = "mqlake-decimal"
"""The logical type of decimals in compiled schemas: `read_decimal` reads them, not fastavro."""

_MOST_DIGITS = 1000


def parse_schema(text: str) -> Any:
    """Return a schema as JSON values, with each named type expanded where it is used.

    Raises:
        FormatError: the text is not a schema, a type contains itself, or a few types that contain
            each other several times make very many.
    """
    import fastavro.schema

    try:
        parsed = json.loads(text)
        fastavro.schema.parse_schema(parsed)
    except Exception as error:  # noqa: BLE001
        # fastavro's own errors have no common class, and it does not check the form of its input.
        raise FormatError(f"not an Avro schema: {type(error).__name__}: {error}") from None
    try:
        found = _expand(parsed, {}, "", ())
        _check_size(found)
    except RecursionError:
        raise FormatError("the types of the Avro schema are nested too deeply") from None
    return found


def _expand(schema: Any, named: dict[str, Any], space: str, inside: tuple[str, ...]) -> Any:
    """Expand named types where they are used; keep only logical types that have a column type."""
    if isinstance(schema, list):
        return [_expand(one, named, space, inside) for one in schema]
    if isinstance(schema, str):
        if schema in PRIMITIVES or schema == "null":
            return schema
        name = schema if "." in schema or not space else f"{space}.{schema}"
        name = name if name in named or name in inside else schema
        if name in inside:
            raise FormatError(f"type {name} contains itself: it has no column type")
        if name not in named:
            raise FormatError(f"type {name} is used before it is defined")
        return named[name]
    kind = schema["type"]
    if not isinstance(kind, str) or kind not in (
        *("record", "error", "enum", "fixed", "array", "map"),
        *(*PRIMITIVES, "null"),
    ):
        return _expand(kind, named, space, inside)
    if kind == "array":
        items = _expand(schema["items"], named, space, inside)
        _check_size(items)  # It takes long to look at very many types.
        if _may_be_empty(items):
            raise FormatError(
                "arrays of items without bytes are not allowed: a few bytes could claim billions "
                "of items"
            )
        return {"type": "array", "items": items}
    if kind == "map":
        return {"type": "map", "values": _expand(schema["values"], named, space, inside)}
    if kind in PRIMITIVES or kind == "null":
        return _with_logical(schema, kind)
    return _named(schema, named, space, inside)


def _named(schema: Any, named: dict[str, Any], space: str, inside: tuple[str, ...]) -> Any:
    space = schema.get("namespace", space)
    name: str = schema["name"]
    if "." in name:
        space = name.rpartition(".")[0]
    full = name if "." in name or not space else f"{space}.{name}"
    kept = {key: schema[key] for key in ("symbols", "default", "size", "aliases") if key in schema}
    made: dict[str, Any] = {"type": schema["type"], "name": full, **kept}
    if schema["type"] == "fixed":
        made |= {key: schema[key] for key in ("precision", "scale") if key in schema}
        if schema.get("logicalType") == "decimal":
            made["logicalType"] = "decimal"
    if schema["type"] in ("record", "error"):
        made["type"] = "record"
        made["fields"] = [
            {
                **{key: field[key] for key in ("default", "aliases") if key in field},
                "name": field["name"],
                "type": _expand(field["type"], named, space, (*inside, full)),
            }
            for field in schema["fields"]
        ]
    named[full] = made
    return made


def _with_logical(schema: Any, kind: str) -> Any:
    logical = schema.get("logicalType")
    if (kind, logical) in LOGICAL:
        return {"type": kind, "logicalType": logical}
    if (kind, logical) == ("bytes", "decimal"):
        return {
            "type": kind,
            "logicalType": logical,
            "precision": schema["precision"],
            "scale": schema.get("scale", 0),
        }
    return kind


def _check_size(schema: Any) -> None:
    """Check how many types a schema has. Types that are used twice are the same object.

    Raises:
        FormatError: there are too many: a value of a few bytes, or none, could have all of them.
    """
    if _size(schema, {}) > _MOST_TYPES:
        raise FormatError(f"the Avro schema has more than {_MOST_TYPES:,} types")


def _size(schema: Any, known: dict[int, int]) -> int:
    if id(schema) in known:
        return known[id(schema)]
    parts: Any = schema if isinstance(schema, list) else ()
    if isinstance(schema, dict):
        fields = (field["type"] for field in schema.get("fields", ()))
        parts = chain(fields, (schema[key] for key in ("items", "values") if key in schema))
    found = 1 + sum(_size(part, known) for part in parts)
    known[id(schema)] = found
    return found


def _may_be_empty(schema: Any) -> bool:
    if isinstance(schema, list):
        return False
    if isinstance(schema, dict):
        if schema["type"] == "record":
            return all(_may_be_empty(field["type"]) for field in schema["fields"])
        return schema["type"] == "null" or (schema["type"] == "fixed" and not schema["size"])
    return schema == "null"


def compiled(schema: Any) -> Any:
    """Return a schema in fastavro's form, so that it is not parsed again for each body."""
    import fastavro.read
    import fastavro.schema

    fastavro.read.LOGICAL_READERS |= dict.fromkeys(
        (f"bytes-{_DECIMAL}", f"fixed-{_DECIMAL}"), read_decimal
    )
    return fastavro.schema.parse_schema(_with_names(schema, set()))


def _with_names(schema: Any, seen: set[str]) -> Any:
    """Refer by name to types that are already defined: Avro defines each once."""
    if isinstance(schema, list):
        return [_with_names(one, seen) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "name" in schema:
        if schema["name"] in seen:
            return schema["name"]
        seen.add(schema["name"])
    made = dict(schema)
    if schema.get("logicalType") == "decimal":
        made["logicalType"] = _DECIMAL
    for key in ("items", "values"):
        if key in schema:
            made[key] = _with_names(schema[key], seen)
    if "fields" in schema:
        made["fields"] = [
            field | {"type": _with_names(field["type"], seen)} for field in schema["fields"]
        ]
    return made


def read_decimal(data: bytes, writer: Any, _: Any = None) -> Decimal:
    """Return a decimal of a body.

    fastavro rounds numbers of too many digits, after minutes or hours if these are a few MiB.

    Raises:
        ValueError: it has more digits than its schema says.
    """
    unscaled = int.from_bytes(data, "big", signed=True)
    digits = min(writer["precision"], _MOST_DIGITS)
    if abs(unscaled) >= _power_of_ten(digits):
        raise ValueError(f"a decimal has more than {digits} digits")
    return Decimal((int(unscaled < 0), _digits(abs(unscaled)), -writer.get("scale", 0)))


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(number)))


@lru_cache(maxsize=64)
def _power_of_ten(digits: int) -> int:
    return int(10**digits)


def reader_schema(schema: Any) -> Any:
    """Return a reader's schema in which fields that may be null are null if they are missing."""
    if isinstance(schema, list):
        return [reader_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema["type"] == "array":
        return schema | {"items": reader_schema(schema["items"])}
    if schema["type"] == "map":
        return schema | {"values": reader_schema(schema["values"])}
    if schema["type"] == "record":
        return schema | {"fields": [_with_default(field) for field in schema["fields"]]}
    return schema


def _with_default(field: Any) -> Any:
    kind = reader_schema(field["type"])
    if "default" not in field and isinstance(kind, list) and "null" in kind:
        kind = ["null", *(one for one in kind if one != "null")]
        return field | {"type": kind, "default": None}
    return field | {"type": kind}
