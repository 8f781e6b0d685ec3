"""Field ids of Parquet columns, by which readers of an Iceberg table find them.

A reader takes a column of a file by its id, whatever its name is there or in the table.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from typing import Any

import pyarrow as pa

_ID = b"PARQUET:field_id"


def with_id(field: Any, number: int, kind: Any) -> Any:
    """Return an Arrow field with the id of an Iceberg column, and with those of its parts.

    Args:
        number: the column's id.
        kind: its Iceberg type, which has the same parts as the field's.
    """
    made = pa.field(field.name, _with_ids(field.type, kind), field.nullable)
    return made.with_metadata({_ID: str(number).encode()})


def id_of(field: Any) -> int | None:
    """Return the id of an Arrow field of a file; None without one."""
    written = (field.metadata or {}).get(_ID)
    return None if written is None else int(written)


def ids_of(schema: Any) -> tuple[int | None, ...]:
    """Return the ids of an Arrow schema's columns."""
    return tuple(id_of(field) for field in schema)


def _with_ids(type_: Any, kind: Any) -> Any:
    if pa.types.is_map(type_):
        return pa.map_(
            with_id(type_.key_field, kind.key_id, kind.key_type),
            with_id(type_.item_field, kind.value_id, kind.value_type),
        )
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        element = with_id(type_.value_field, kind.element_id, kind.element_type)
        return pa.list_(element) if pa.types.is_list(type_) else pa.large_list(element)
    if pa.types.is_struct(type_):
        parts = {part.name: part for part in kind.fields}
        return pa.struct(
            [
                with_id(part, parts[part.name].field_id, parts[part.name].field_type)
                for part in type_
            ]
        )
    return type_
