"""Avro bodies, decoded by fastavro."""

# pyright: basic
# fastavro is an extra, and schemas are arbitrary JSON.

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from mqlake.errors import FormatError, JobError
from mqlake.query.bodies.avro_schema import compiled, parse_schema, reader_schema
from mqlake.query.bodies.framing import PREFIX
from mqlake.query.bodies.registry import Registry

Writers = Callable[[int], Any]


class AvroBodies(NamedTuple):
    """The writer's and the reader's schemas, as JSON texts.

    Attributes:
        writer: None if each body names its schema in the registry.
    """

    reader: str
    writer: str | None
    registry: str | None
    framed: bool

    def decoder(self) -> Callable[[bytes], dict[str, Any] | None]:
        """Return the decoder of a body; each process has one for each recipe."""
        return _decoder(*self)


@lru_cache(maxsize=64)
def _decoder(
    reader_text: str, writer_text: str | None, registry: str | None, framed: bool
) -> Callable[[bytes], dict[str, Any] | None]:
    read = fastavro_library().schemaless_reader
    plain = parse_schema(reader_text)
    columns = reader_schema(plain)
    reader, convert = compiled(columns), _converter(columns)
    writers = _writers(writer_text or reader_text, registry)
    readers: dict[int, Any] = {}
    skipped = PREFIX if framed else 0

    def decode(body: bytes) -> dict[str, Any] | None:
        if skipped and (len(body) < skipped or body[0]):
            raise FormatError("the body lacks Confluent's prefix")
        stream = io.BytesIO(body)
        stream.seek(skipped)
        number = int.from_bytes(body[1:skipped], "big")
        writer = writers(number)
        if number not in readers:
            # Without a reader's schema, fastavro resolves nothing, which is several times faster.
            readers[number] = None if writer == compiled(plain) else reader
        try:
            value: Any = read(stream, writer, readers[number])
            value = convert(value) if convert else value
        except Exception as error:  # noqa: BLE001
            # fastavro raises errors of any kind for wrong bytes, such as IndexError.
            raise FormatError(f"{type(error).__name__}: {error}") from None
        if stream.tell() != len(body):
            raise FormatError(f"{len(body) - stream.tell()} bytes follow the Avro datum")
        return value

    return decode


def _writers(text: str, registry: str | None) -> Writers:
    if registry is None:
        writer = compiled(parse_schema(text))
        return lambda _: writer
    return Registry(registry).schema


def _converter(schema: Any) -> Callable[[Any], Any] | None:
    """Return a function that converts fastavro's values to Arrow's if they differ, as maps do;
    otherwise None.
    """
    if isinstance(schema, list):
        found = [one for one in map(_converter, schema) if one]
        if not found:
            return None
        return lambda value: None if value is None else found[0](value)
    if not isinstance(schema, dict):
        return None
    if schema["type"] == "map":
        inner = _converter(schema["values"]) or (lambda value: value)
        return lambda value: [(key, inner(one)) for key, one in value.items()]
    if schema["type"] == "array":
        item = _converter(schema["items"])
        return item and (lambda value: [item(one) for one in value])
    if schema["type"] == "record":
        fields = {field["name"]: _converter(field["type"]) for field in schema["fields"]}
        changed = {name: one for name, one in fields.items() if one}
        if changed:
            return lambda value: value | {name: one(value[name]) for name, one in changed.items()}
    return None


def fastavro_library() -> Any:
    """Return the package fastavro; raises JobError if it is missing."""
    try:
        import fastavro
    except ImportError:
        raise JobError("Avro bodies need fastavro: pip install 'mqlake[avro]'") from None
    return fastavro
