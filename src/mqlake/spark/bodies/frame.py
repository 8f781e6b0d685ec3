"""Decode the bodies of a DataFrame into a column of type struct."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mqlake.errors import FormatError
from mqlake.query.reading.parsing import nearest
from mqlake.spark.bodies.decoded import DecodedBody

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MODES = ("PERMISSIVE", "FAILFAST")
FRAMINGS = ("none", "confluent")
KINDS = ("json", "avro", "protobuf", "cloudevents")
BODY_COLUMNS = ("body", "value")
_WHERE = ("topic", "queueId", "partition", "queueOffset", "offset")
_SAMPLE = 1000


def decode(
    frame: DataFrame,
    body: str,
    *,
    schema: str | bytes | Path | None = None,
    message: str | None = None,
    registry: str | None = None,
    subject: str | None = None,
    writer_schema: str | Path | None = None,
    framing: str | None = None,
    mode: str = "PERMISSIVE",
    column: str | None = None,
    into: str = "decoded",
    corrupt: str = "_corrupt",
    sample_size: int = _SAMPLE,
) -> DataFrame:
    """Add the decoded bodies of messages as a column of type struct (docs/typed-bodies.md).

    Args:
        frame: a batch or streaming DataFrame with the bodies in a binary column.
        body: json, avro, protobuf or cloudevents.
        schema: json and the data of cloudevents: columns as DDL (`id bigint, price double`); None
            infers them from a sample. avro: the reader's schema, JSON or a file. protobuf: a
            file of descriptors (`protoc --include_imports --descriptor_set_out`), or its bytes.
        message: protobuf: the full name of the message type.
        registry: avro: the URL of a registry with Confluent's API; implies Confluent framing.
        subject: avro: the subject whose latest schema in the registry is the reader's, if `schema`
            is None.
        writer_schema: avro without a registry: the schema with which bodies were written, if not
            `schema`.
        framing: none, or confluent: a zero byte and a schema's id before each body.
        mode: PERMISSIVE: the value of a malformed body is null, and the body is in the column
            `corrupt`. FAILFAST: a malformed body fails the query.
        column: the column of the bodies. None: `body`, otherwise `value`.
        into, corrupt: names of the columns that are added: a struct, and the raw body (binary) of
            a message whose body could not be decoded.
        sample_size: the number of messages from which a schema is inferred.

    Raises:
        FormatError: an argument is wrong, a column is unknown, or a schema cannot be read.
        JobError: a package that the format needs is missing, or the registry does not answer.
    """
    from pyspark.sql import functions as sql

    _check("body", body, KINDS)
    _check("mode", mode.upper(), MODES)
    framing = framing or ("confluent" if registry else "none")
    _check("framing", framing, FRAMINGS)
    source = column or _body_column(frame)
    for name in (into, corrupt):
        if name.lower() in (other.lower() for other in frame.columns):
            raise FormatError(f"the DataFrame already has a column {name}: choose another name")
    if source not in frame.columns:
        raise FormatError(
            f"there is no column {source}; the columns are {', '.join(frame.columns)}"
        )

    from mqlake.spark.bodies.compressed import decompressed

    plain = decompressed(frame, source)
    if body in ("json", "cloudevents"):
        from mqlake.spark.bodies import cloud_events, json_bodies

        given = json_bodies.ddl(schema)
        kind = json_bodies if body == "json" else cloud_events
        decoded = kind.decoded(frame, plain.value, given, framing == "confluent", sample_size)
    elif body == "avro":
        from mqlake.spark.bodies import avro

        decoded = avro.decoded(plain.value, schema, writer_schema, registry, subject, framing)
    else:
        from mqlake.spark.bodies import protobuf

        decoded = protobuf.decoded(plain.value, schema, message, framing)
    decoded = DecodedBody(decoded.value, sql.coalesce(plain.fault, decoded.fault))
    return _with_columns(frame, source, decoded, (into, corrupt), mode.upper() == "FAILFAST")


def _with_columns(
    frame: DataFrame, source: str, decoded: DecodedBody, names: tuple[str, str], failfast: bool
) -> DataFrame:
    from pyspark.sql import functions as sql

    value, fault = decoded.value, decoded.fault
    if failfast:
        error = sql.raise_error(sql.concat(_where(frame), fault))
        value = sql.when(fault.isNull(), value).otherwise(error)
    into, corrupt = names
    raw = sql.when(fault.isNotNull(), sql.col(source))
    return frame.withColumns({into: value, corrupt: raw})


def _where(frame: DataFrame) -> Column:
    """Return the text that identifies the message of an error."""
    from pyspark.sql import functions as sql

    parts = [
        sql.concat(sql.lit(f"{name} "), sql.col(name).cast("string"))
        for name in _WHERE
        if name in frame.columns
    ]
    return sql.concat(sql.concat_ws(", ", *parts, sql.lit("malformed body")), sql.lit(": "))


def _body_column(frame: DataFrame) -> str:
    for name in BODY_COLUMNS:
        if name in frame.columns:
            return name
    raise FormatError(
        f"there is no column body or value; the columns are {', '.join(frame.columns)}: name "
        "one (column=…)"
    )


def _check(name: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise FormatError(
            f"{name} {given[:200]!r} is not one of {', '.join(known)}; the nearest is "
            f"{nearest(given, known)}"
        )
