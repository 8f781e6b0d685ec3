"""Avro bodies as columns of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mqlake.errors import FormatError
from mqlake.query.bodies.avro import AvroBodies, fastavro_library
from mqlake.query.bodies.avro_schema import parse_schema
from mqlake.query.bodies.registry import Registry
from mqlake.spark.bodies import rows
from mqlake.spark.bodies.avro_columns import avro_columns
from mqlake.spark.bodies.decoded import DecodedBody

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType


class AvroRecipe(AvroBodies):
    """The same, with Spark's columns."""

    def columns(self) -> StructType:
        """Return the columns of the reader's schema."""
        return avro_columns(parse_schema(self.reader))


def decoded(
    body: Column,
    schema: str | bytes | Path | None,
    writer_schema: str | Path | None,
    registry: str | None,
    subject: str | None,
    framing: str,
) -> DecodedBody:
    """Return the decoded Avro of a column of bodies."""
    fastavro_library()
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
