"""The columns of the source: rocketmq-spark's first, then the other fields of a record.

`properties` is a map; in rocketmq-spark it was JSON text.
"""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqlake.dispatch.value_columns import Times
from mqlake.errors import FormatError
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.query.reading.parsing import known_columns

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Batch
    from mqlake.jobs.bodies.plain_bodies import StoredBodies

BROKER_NAME = "brokerName"

COLUMNS: tuple[str, ...] = (
    "topic",
    "flag",
    "body",
    "properties",
    "brokerName",
    "queueId",
    "queueOffset",
    "bornTimestamp",
    "storeTimestamp",
    "physicalOffset",
    "size",
    "tags",
    "keys",
    "msgId",
    "uniqKey",
    "sysFlag",
    "reconsumeTimes",
    "bornHost",
    "storeHost",
    "preparedTransactionOffset",
    "bodyCrc",
)
"""All columns, in their order."""

NULLABLE = frozenset({"brokerName", "tags", "uniqKey"})

_TYPES = {
    "body": "binary",
    "properties": "map<string,string>",
    "keys": "array<string>",
    **dict.fromkeys(("bornTimestamp", "storeTimestamp"), "timestamp"),
    **dict.fromkeys(("queueOffset", "physicalOffset", "preparedTransactionOffset"), "bigint"),
    **dict.fromkeys(
        ("flag", "queueId", "size", "sysFlag", "reconsumeTimes", "bodyCrc"),
        "int",
    ),
}

_OF_BODIES = frozenset({"body", "sysFlag"})

# Milliseconds: 0001-01-03 and the end of 9999-12-29. Python supports the years 1 to 9999, in local
# time, and uses neighbouring days when it converts a time.
_FIRST_TIME, _LAST_TIME = -62_135_424_000_000, 253_402_127_999_999

TIMES = Times("us", 1000, _FIRST_TIME, _LAST_TIME)
"""A client may send any 64 bits as the born timestamp of a message."""


def column_type(name: str) -> str:
    """Return a column's type in Spark's SQL."""
    return _TYPES.get(name, "string")


def check_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with these names, in any case.

    Raises:
        FormatError: a column does not exist, or is named twice.
    """
    return known_columns(names, COLUMNS)


def chosen_columns(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns that the options `columns` and `includeBody` leave.

    Raises:
        FormatError: a column is unknown, or none is left.
    """
    columns = check_columns(values["columns"]) if values["columns"] else COLUMNS
    if not values["includeBody"]:
        columns = tuple(name for name in columns if name != "body")
    if not columns:
        raise FormatError("there is no column left: options columns and includeBody exclude all")
    return columns


def to_batches(
    batch: Batch, schema: Any, broker_name: str | None, stored: StoredBodies | None
) -> Iterator[Any]:
    """Yield records as `pyarrow.RecordBatch`es with this Arrow schema.

    Args:
        stored: counts bodies that cannot be decompressed; None to leave all bodies as stored.
    """
    from mqlake.jobs.bodies.inner_batches import columns_of

    names = stored_columns(schema.names)
    if stored is None or not (batch.records["sys_flag"] & COMPRESSED).any():
        yield fitted(columns_of(batch, names, TIMES), schema, broker_name)
    else:
        made = columns_of(batch, sorted(with_bodies(names)), TIMES)
        yield from plain_batches(made, schema, broker_name, stored)


def plain_batches(
    made: Any, schema: Any, broker_name: str | None, stored: StoredBodies
) -> Iterator[Any]:
    """Yield rows with decompressed bodies as `pyarrow.RecordBatch`es with this Arrow schema.

    Args:
        made: all columns except `brokerName`, and those of `with_bodies`.
        stored: counts bodies that cannot be decompressed.
    """
    from mqlake.jobs.bodies.plain_bodies import decompressed

    parts = decompressed(made, stored) if _OF_BODIES.issubset(made.schema.names) else [made]
    for part in parts:
        yield fitted(part, schema, broker_name)


def with_bodies(names: Iterable[str]) -> set[str]:
    """Return columns, with those that are needed to decompress bodies if one of these is named.

    Whether a body can be decompressed decides about its `sysFlag`.
    """
    found = set(names)
    return found | _OF_BODIES if found & _OF_BODIES else found


def stored_columns(names: Iterable[str]) -> list[str]:
    """Return those of columns that a log contains; one of them at least, so that rows count."""
    return [name for name in names if name != BROKER_NAME] or ["physicalOffset"]


def fitted(made: Any, schema: Any, broker_name: str | None) -> Any:
    """Return a `pyarrow.RecordBatch` that has the columns of this Arrow schema, from these.

    Args:
        made: all columns except `brokerName`, in any order, and perhaps others.
        broker_name: the value of the column `brokerName`.
    """
    import pyarrow as pa

    arrays = []
    for field in schema:
        if field.name == BROKER_NAME:
            arrays.append(_constant(broker_name, len(made)))
        else:
            column = made.column(made.schema.get_field_index(field.name))
            arrays.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _constant(text: str | None, count: int) -> Any:
    import pyarrow as pa

    return pa.repeat(pa.scalar(text, pa.string()), count)
