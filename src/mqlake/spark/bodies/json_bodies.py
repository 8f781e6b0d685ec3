"""JSON bodies, decoded by Spark's own `from_json`, which runs in the JVM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from mqlake.errors import FormatError
from mqlake.query.bodies.framing import PREFIX
from mqlake.spark.bodies.decoded import DecodedBody

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_CORRUPT = "mqlake_corrupt_record"
_SAMPLE_CHARACTERS = 4 << 20


def ddl(schema: str | bytes | Path | None) -> str | None:
    """Return columns as DDL; a file name is replaced by the file's content."""
    if isinstance(schema, bytes):
        raise FormatError("schema: columns must be DDL, such as 'id bigint, price double'")
    return schema.read_text() if isinstance(schema, Path) else schema


def decoded(
    frame: DataFrame, body: Column, schema: str | None, framed: bool, sample_size: int
) -> DecodedBody:
    """Return the decoded JSON of a column of bodies."""
    from pyspark.sql import functions as sql

    payload, fault = unframed(body, framed)
    columns = infer(frame, payload, sample_size) if schema is None else schema
    value, wrong = parsed(payload, columns)
    return DecodedBody(value, sql.coalesce(fault, wrong))


def unframed(body: Column, framed: bool) -> tuple[Column, Column]:
    """Return the bodies without Confluent's prefix, and what is wrong with it."""
    from pyspark.sql import functions as sql

    if not framed:
        return body, sql.lit(None).cast("string")
    has_prefix = (sql.length(body) >= PREFIX) & (sql.substring(body, 1, 1) == sql.lit(b"\0"))
    missing = body.isNotNull() & ~has_prefix
    fault = sql.when(missing, sql.lit("the body lacks Confluent's prefix"))
    return sql.when(has_prefix, sql.substring(body, PREFIX + 1, 1 << 30)), fault


def parsed(payload: Column, columns: str) -> tuple[Column, Column]:
    """Return JSON texts (binary or string) as a struct, and what is wrong with them.

    A field of another type, or a missing field, is null; the other fields are kept.

    Raises:
        FormatError: `columns` is not DDL.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import StringType, StructField, StructType

    wanted = struct_of(columns)
    with_corrupt = StructType([*wanted.fields, StructField(_CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    read = sql.from_json(payload.cast("string"), with_corrupt, options)
    fields = [read.getField(field.name).alias(field.name) for field in wanted]
    value = sql.when(read.isNotNull(), sql.struct(*fields))
    is_wrong = read.getField(_CORRUPT).isNotNull()
    return value, sql.when(is_wrong, sql.lit("the body is not JSON of this schema"))


def struct_of(columns: str) -> StructType:
    """Return columns that are given as DDL; raises FormatError."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        found = StructType.fromDDL(columns)
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        raise FormatError(f"schema {columns[:200]!r} is not DDL: {reason}") from None
    if not isinstance(found, StructType) or not found.fields:
        raise FormatError(f"schema {columns[:200]!r} has no columns")
    seen: set[str] = set()
    for name in found.names:
        if name.lower() in seen:
            raise FormatError(
                f"schema: the column {name} occurs twice; upper and lower case are the same: "
                "give a schema"
            )
        seen.add(name.lower())
    return found


def infer(frame: DataFrame, payload: Column, sample_size: int) -> str:
    """Infer columns, as DDL, from the first JSON objects of a DataFrame.

    Raises:
        FormatError: the DataFrame is streaming, or there is no JSON object in the sample.
    """
    if frame.isStreaming:
        raise FormatError(
            "a schema cannot be inferred from a stream: pass one (schema=…), or infer it "
            "from a batch query of the same topics"
        )
    rows = frame.select(payload.cast("string").alias("text")).limit(sample_size).collect()
    objects: list[str] = []
    left = _SAMPLE_CHARACTERS
    for row in rows:
        if row.text is not None and _is_object(row.text) and len(row.text) <= left:
            objects.append(row.text)
            left -= len(row.text)
    if not objects:
        raise FormatError(f"none of the first {len(rows)} bodies is a JSON object: pass a schema")
    return _merged(frame, objects)


def _merged(frame: DataFrame, objects: list[str]) -> str:
    from pyspark.sql import functions as sql

    array = sql.lit("[" + ",".join(objects) + "]")
    found = frame.sparkSession.range(1).select(sql.schema_of_json(array)).first()
    assert found is not None
    text = cast("str", found[0])
    return text.removeprefix("ARRAY<").removesuffix(">")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, object_pairs_hook=_without_repetition), dict)
    except (ValueError, RecursionError):
        return False


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found
