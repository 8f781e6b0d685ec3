"""Adapt the columns to write to those of a table, which may have more or fewer."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from typing import Any

import pyarrow as pa

from mqlake.errors import JobError
from mqlake.lake.files.letters import EXTRA, FILLED
from mqlake.lake.options import FollowOptions
from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.columns import COLUMNS, NULLABLE

_WIDENED = ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))
"""Types of messages, and wider ones that a table may have instead."""


class SchemaConflictError(JobError):
    """A table has a column that is incompatible with messages."""


class UnwritableTableError(SchemaConflictError):
    """A table demands of writers what its library cannot do, so nothing may be committed to it."""


def table_schema(names: tuple[str, ...]) -> Any:
    """Return the Arrow schema of columns of messages or dead letters: all may be null."""
    schema = arrow_schema(name for name in names if name not in EXTRA)
    fields = {field.name: field.with_nullable(True).remove_metadata() for field in schema}
    fields |= {name: pa.field(name, EXTRA[name]) for name in names if name in EXTRA}
    return pa.schema([fields[name] for name in names])


def wanted_schema(options: FollowOptions) -> Any:
    """Return the Arrow schema of the columns that a table should have."""
    schema = table_schema(options.columns)
    return schema if options.body_fields is None else pa.schema([*schema, *options.body_fields])


def fit(table: Any, wanted: Any, where: str) -> tuple[Any, list[Any]]:
    """Return the wanted columns with the types that the table has, and those that it lacks.

    Columns that only the table has are null in new rows.

    Args:
        table, wanted: Arrow schemas.
        where: the table's name in messages.

    Raises:
        SchemaConflictError: a column has another type in the table, or a column that is not
            written may not be null.
    """
    known = {field.name.lower(): field for field in table}
    filled = _filled(wanted)
    fields: list[Any] = []
    missing: list[Any] = []
    for field in wanted:
        there = known.pop(field.name.lower(), None)
        if there is None:
            missing.append(field)
            fields.append(field)
        else:
            if not there.nullable and field.name not in filled:
                raise SchemaConflictError(
                    f"{where}: column {field.name} may not be null there, and is null in some "
                    "messages; allow null there, or leave it out with --columns"
                )
            fields.append(_as_there(field, there, where).with_nullable(there.nullable))
    for field in known.values():
        if not field.nullable:
            raise SchemaConflictError(
                f"{where}: column {field.name} may not be null, but messages have no such column; "
                "allow null there"
            )
    return pa.schema(fields), missing


def _filled(wanted: Any) -> frozenset[str]:
    """Return the columns of messages, or of dead letters, that are never null."""
    if "kind" in wanted.names:
        return frozenset(FILLED)
    return frozenset(COLUMNS) - NULLABLE


def _as_there(field: Any, there: Any, where: str) -> Any:
    if field.name != there.name:
        raise SchemaConflictError(
            f"{where}: has a column {there.name}, which should be {field.name}"
        )
    if _kind(field.type) == _kind(there.type):
        return field
    if (field.type, there.type) in _WIDENED:
        return field.with_type(there.type)
    raise SchemaConflictError(
        f"{where}: column {field.name} is {there.type} there, and {field.type} here; "
        "leave it out with --columns, or follow into another table"
    )


def _kind(type_: Any) -> str:
    """Return the name of a type; types that differ only in their memory layout share a name."""
    if pa.types.is_map(type_):
        return f"map<{_kind(type_.key_type)},{_kind(type_.item_type)}>"
    if pa.types.is_struct(type_):
        parts = [f"{part.name}:{_kind(part.type)}" for part in type_]
        return f"struct<{','.join(parts)}>"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"list<{_kind(type_.value_type)}>"
    text = str(type_).removeprefix("large_").removesuffix("_view")
    return text.replace("tz=+00:00", "tz=UTC")
