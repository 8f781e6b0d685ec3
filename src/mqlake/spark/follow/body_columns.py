"""Columns of a table that are decoded from message bodies (docs/typed-bodies.md)."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlake.errors import FormatError
from mqlake.lake.body_format import BodyFormat
from mqlake.query.reading.parsing import suggestion
from mqlake.query.store.columns import COLUMNS
from mqlake.spark.bodies.frame import KINDS, decode
from mqlake.spark.source.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORRUPT = "_corrupt"
ARGUMENTS = ("message", "registry", "subject", "writer_schema", "framing")
"""Arguments of `decode` besides the schema."""

_INTO = "mqlake_decoded"
_TAKEN = {name.lower() for name in (*COLUMNS, "day", CORRUPT)}


def parse_format(text: str | None, arguments: Mapping[str, str]) -> BodyFormat | None:
    """Return the format in FORMAT[:SCHEMA]. If SCHEMA is the name of a file, that file is read.

    Returns:
        None if there is no text: then bodies are not decoded.

    Raises:
        FormatError: an unknown format or argument, or JSON without a schema.
    """
    if text is None:
        return None
    kind, _, given = text.partition(":")
    if kind not in KINDS:
        raise FormatError(f"--decode {kind[:50]}: unknown format; use {', '.join(KINDS)}")
    for name in arguments:
        if name not in ARGUMENTS:
            meant = suggestion(name, ARGUMENTS)
            raise FormatError(f"--decode-option {name[:50]}: does not exist; {meant}")
    if kind == "json" and not given:
        raise FormatError("--decode json: give the columns, as in json:'id bigint, price double'")
    is_file = kind in ("json", "cloudevents") and bool(given) and Path(given).is_file()
    return BodyFormat(kind, Path(given) if is_file else given or None, dict(arguments))


def typed(frame: DataFrame, body: BodyFormat) -> DataFrame:
    """Return messages with a column for each field of their bodies, and the malformed bodies.

    A field with the name of a message's column is called `body_NAME`.

    Raises:
        FormatError: the errors of `decode`; or two fields would have the same name.
    """
    from pyspark.sql import functions as sql

    made = decode(
        frame, body.kind, schema=body.schema, into=_INTO, corrupt=CORRUPT, **_arguments(body)
    )
    decoded: Any = made.schema[_INTO].dataType
    fields: list[str] = decoded.fieldNames()
    names = [f"body_{name}" if name.lower() in _TAKEN else name for name in fields]
    lowered = [name.lower() for name in names]
    for number, name in enumerate(lowered):
        if name in lowered[:number] or name in _TAKEN:
            raise FormatError(f"--decode: two columns would be called {names[number]}")
    columns = [sql.col(_INTO)[field].alias(name) for field, name in zip(fields, names, strict=True)]
    return made.select(*frame.columns, *columns, CORRUPT)


def _arguments(body: BodyFormat) -> dict[str, Any]:
    return dict(body.arguments)


def body_fields(spark: SparkSession, body: BodyFormat) -> Any:
    """Return the Arrow schema of the columns that `typed` adds."""
    import pyarrow as pa  # Late: commands parse formats before anything else is loaded.

    from mqlake.spark.reading.schema import arrow_schema

    empty = spark.createDataFrame([], spark_schema(COLUMNS))
    made = typed(empty, body).schema
    schema = arrow_schema(made)
    return pa.schema(
        [
            field.with_nullable(True).remove_metadata()
            for field in schema
            if field.name not in COLUMNS
        ]
    )


def typed_rows(spark: SparkSession, rows: Any, body: BodyFormat) -> Any:
    """Return a `pyarrow.Table` of messages with the columns of their bodies."""
    frame: Any = spark.createDataFrame(rows, spark_schema(rows.schema.names))
    return typed(frame, body).toArrow()
