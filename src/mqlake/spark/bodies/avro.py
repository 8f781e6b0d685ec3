"""Avro bodies, decoded by fastavro."""

# pyright: basic
# fastavro is an extra, and schemas are arbitrary JSON.

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlake.errors import FormatError, JobError
from mqlake.spark.bodies import rows
from mqlake.spark.bodies.avro_schema import avro_columns, compiled, parse_schema, reader_schema
from mqlake.spark.bodies.decoded import CONFLUENT_PREFIX, Decoded
from mqlake.spark.bodies.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

Writers = Callable[[int], Any]


class AvroRecipe(NamedTuple):
    """The writer's and the reader's schemas, as JSON texts.

    Attributes:
        writer: None if each body names its schema in the registry.
    """

    reader: str
    writer: str | None
    registry: str | None
    framed: bool

    def columns(self) -> StructType:
        """Return the columns of the reader's schema."""
        return avro_columns(parse_schema(self.reader))

    def decoder(self) -> Callable[[bytes], dict[str, Any] | None]:
        """Return the decoder of a body; each process has one for each recipe."""
        return _decoder(self)


def decoded(
    body: Column,
    schema: str | bytes | Path | None,
    writer_schema: str | Path | None,
    registry: str | None,
    subject: str | None,
    framing: str,
) -> Decoded:
    """Return the decoded Avro of a column of bodies."""
    _fastavro()
    if registry and framing == "none":
        raise FormatError("registry implies Confluent's framing: leave out framing")
    if registry and writer_schema:
        raise FormatError("writer_schema and registry cannot be combined")
    if schema is None:
        if not (registry and subject):
            raise FormatError("Avro bodies need schema, or registry and subject")
        reader = Registry(registry).latest(subject)
    else:
        reader = _text(schema)
    writer = None if registry else _text(writer_schema or schema or reader)
    recipe = AvroRecipe(reader, writer, registry, framing == "confluent")
    recipe.decoder()  # A wrong schema fails here, not in the tasks.
    return rows.decoded(body, recipe)


def _text(schema: str | bytes | Path) -> str:
    if isinstance(schema, bytes):
        return schema.decode()
    if isinstance(schema, str) and schema.lstrip()[:1] in ("{", "[", '"'):
        return schema
    try:
        return Path(schema).read_text()
    except OSError as error:
        raise FormatError(
            f"schema {str(schema)[:200]!r} is neither an Avro schema in JSON nor a readable "
            f"file: {error.strerror}"
        ) from None


@lru_cache(maxsize=64)
def _decoder(recipe: AvroRecipe) -> Callable[[bytes], dict[str, Any] | None]:
    read = _fastavro().schemaless_reader
    plain = parse_schema(recipe.reader)
    columns = reader_schema(plain)
    reader, convert = compiled(columns), _converter(columns)
    writers = _writers(recipe)
    readers: dict[int, Any] = {}
    skipped = CONFLUENT_PREFIX if recipe.framed else 0

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


def _writers(recipe: AvroRecipe) -> Writers:
    if recipe.registry is None:
        writer = compiled(parse_schema(recipe.writer or recipe.reader))
        return lambda _: writer
    return Registry(recipe.registry).schema


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


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise JobError("Avro bodies need fastavro: pip install 'mqlake[avro]'") from None
    return fastavro
