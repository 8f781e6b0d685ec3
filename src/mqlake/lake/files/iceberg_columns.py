"""Which column of an Iceberg table holds which column of messages, even if others rename it.

The table's property `mqlake.follow.columns` notes the field id of each column of messages. A
column that another program renames or moves keeps its id, and so its messages. One that another
program drops stays dropped, until a column of that name is added.
"""

# pyright: basic
# Reason: pyarrow and pyiceberg carry few types.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import NameMapping, parse_mapping_from_json

from mqlake.errors import JobError
from mqlake.lake.files.field_ids import with_id

COLUMNS = "mqlake.follow.columns"
NAME_MAPPING = "schema.name-mapping.default"

Ids = Mapping[str, int]


def noted_ids(metadata: TableMetadata) -> dict[str, int]:
    """Return the field ids of columns of messages that a table notes."""
    written = metadata.properties.get(COLUMNS)
    if written is None:
        return {}
    try:
        return msgspec.json.decode(written, type=dict[str, int])
    except msgspec.MsgspecError as error:
        raise JobError(f"{metadata.location}: property {COLUMNS} is damaged: {error}") from None


def column_ids(metadata: TableMetadata, names: Any) -> dict[str, int]:
    """Return the field ids of columns of messages, also of those that were dropped.

    A table of an earlier version notes no ids. Readers find the columns of its files by the
    table's name mapping, which has the names of files: these are the names of messages.
    """
    noted, schema = noted_ids(metadata), metadata.schema()
    mapped = _top_level(metadata.name_mapping())
    found: dict[str, int] = {}
    for name in names:
        id_ = noted.get(name, mapped.get(name))
        by_name = next((one.field_id for one in schema.fields if one.name == name), None)
        is_free = by_name is not None and by_name not in noted.values()
        if id_ is None or (is_free and id_ not in schema.field_ids):
            id_ = by_name
        if id_ is not None:
            found[name] = id_
    return found


def names_there(metadata: TableMetadata, names: Any) -> dict[str, str]:
    """Return the table's names of columns of messages, without those that it lacks."""
    schema = metadata.schema()
    ids = column_ids(metadata, names)
    return {
        name: schema.find_field(id_).name for name, id_ in ids.items() if id_ in schema.field_ids
    }


def columns_there(metadata: TableMetadata, names: Any) -> tuple[Any, set[str]]:
    """Return the Arrow schema of a table by the names of messages, and which of them were dropped.

    Columns that no message has keep their names.
    """
    schema, ids = metadata.schema(), column_ids(metadata, names)
    by_id = {id_: name for name, id_ in ids.items()}
    fields = [
        field.with_name(by_id.get(one.field_id, one.name))
        for field, one in zip(schema.as_arrow(), schema.fields, strict=True)
    ]
    return pa.schema(fields), {name for name, id_ in ids.items() if id_ not in schema.field_ids}


def note_columns(transaction: Transaction, names: Any) -> None:
    """Note the field ids of columns of messages in the table, if they have changed."""
    metadata = transaction.table_metadata
    noted = noted_ids(metadata)
    known = {**noted, **column_ids(metadata, names)}
    if known != noted:
        transaction.set_properties({COLUMNS: msgspec.json.encode(known).decode()})


def add_columns(transaction: Transaction, missing: list[Any]) -> None:
    """Add columns, by Arrow fields; values of files without field ids stay where they are.

    PyIceberg gives a new column its name in the name mapping, and takes that from a column that
    was dropped: old files would show their values in the new column.
    """
    before = transaction.table_metadata.name_mapping()
    with transaction.update_schema() as update:
        update.union_by_name(pa.schema(missing))
    after = transaction.table_metadata.name_mapping()
    if before is not None and after is not None:
        known = _top_level(before)
        new = [one for one in after if not any(name in known for name in one.names)]
        kept = NameMapping([*before, *new]).model_dump_json()
        transaction.set_properties({NAME_MAPPING: kept})


def file_schema(fields: Any, schema: Schema, ids: Ids) -> Any:
    """Return the Arrow schema of files with columns of messages: their names, and the field ids.

    Args:
        fields: the columns; those that the table lacks are left out.
        schema: of the table.
    """
    return pa.schema(
        [
            with_id(field, ids[field.name], schema.find_type(ids[field.name]))
            for field in fields
            if ids.get(field.name) in schema.field_ids
        ]
    )


def upgraded(fields: Any, name_mapping: str) -> Any:
    """Return the Arrow schema of a file without field ids with those that its columns have.

    None if the mapping lacks a column.
    """
    from pyiceberg.io.pyarrow import pyarrow_to_schema

    try:
        mapped = pyarrow_to_schema(fields, parse_mapping_from_json(name_mapping))
    except ValueError:
        return None
    return file_schema(fields, mapped, {one.name: one.field_id for one in mapped.fields})


def _top_level(mapping: NameMapping | None) -> dict[str, int]:
    """Return the field ids of a mapping's columns by each of their names."""
    if mapping is None:
        return {}
    return {name: one.field_id for one in mapping if one.field_id is not None for name in one.names}
