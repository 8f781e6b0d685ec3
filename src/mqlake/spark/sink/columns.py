"""The columns that the sink accepts: those of the source, with the same names."""

# pyright: basic, reportAttributeAccessIssue=false
# pyarrow has no types, and creates its functions when it is imported.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlake.errors import FormatError
from mqlake.query.reading.parsing import meant_column

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_INT = _WHOLE[:3]
_TEXT = ("string",)

TYPES: dict[str, tuple[str, ...]] = {
    "body": ("binary", "string"),
    "topic": _TEXT,
    "tags": _TEXT,
    "keys": ("array<string>", "string"),
    "properties": ("map<string,string>",),
    "uniqKey": _TEXT,
    "queueId": _INT,
    "delayLevel": _INT,
    "flag": _INT,
    "sysFlag": _INT,
    "reconsumeTimes": _INT,
    "bornTimestamp": ("timestamp", "bigint"),
    "bornHost": _TEXT,
    "preparedTransactionOffset": _WHOLE,
}
"""The types that each column may have, in Spark's SQL; all columns except `body` may be absent or
null.
"""

GIVEN_BY_STORE = (
    "brokerName",
    "queueOffset",
    "storeTimestamp",
    "physicalOffset",
    "size",
    "msgId",
    "storeHost",
    "bodyCrc",
)
"""Columns of the source that have no effect here: the store assigns new values."""


def check_schema(schema: StructType, topic: str | None) -> None:
    """Check the columns of a DataFrame; `topic` is the option.

    Raises:
        FormatError: a column is unknown, has another type, or is missing.
    """
    known = {name.lower(): name for name in (*TYPES, *GIVEN_BY_STORE)}
    found: set[str] = set()
    for field in schema.fields:
        name = known.get(field.name.lower())
        if name is None:
            meant = meant_column(field.name, list(known.values()))
            raise FormatError(f"the sink has no column {field.name[:200]!r}; {meant}")
        if name in found:
            raise FormatError(f"column {name} occurs twice")
        found.add(name)
        given = field.dataType.simpleString()
        if name in TYPES and given not in TYPES[name] and given != "void":
            wanted = " or ".join(TYPES[name])
            raise FormatError(f"column {name} has type {given}; it must be {wanted}")
    if "body" not in found:
        raise FormatError("column body is missing")
    if topic is None and "topic" not in found:
        raise FormatError("there is neither a column topic nor an option topic: add one of them")


def take(batch: Any) -> dict[str, Any]:
    """Return the columns of a `pyarrow.RecordBatch` by name, each in one type; without columns of
    only nulls.

    Texts become `string`, bodies `binary`, numbers `int32` or `int64`, times milliseconds.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    known = {name.lower(): name for name in TYPES}
    columns: dict[str, Any] = {}
    for given, array in zip(batch.schema.names, batch.columns, strict=True):
        name = known.get(given.lower())
        if name is None or (array.null_count == len(array) and name != "body"):
            continue
        if pa.types.is_timestamp(array.type):
            array = pc.divide(array.cast(pa.int64()), 1000)
        columns[name] = array.cast(_arrow_type(name, array.type))
    return columns


def _arrow_type(name: str, given: Any) -> Any:
    import pyarrow as pa

    if name == "properties":
        return pa.map_(pa.string(), pa.string())
    if name == "keys" and pa.types.is_nested(given):
        return pa.list_(pa.string())
    if name == "body":
        return pa.binary()
    if name in ("bornTimestamp", "preparedTransactionOffset"):
        return pa.int64()
    return pa.int32() if TYPES[name] is _INT else pa.string()
