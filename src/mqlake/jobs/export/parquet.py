"""Write batches of records to Parquet files."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mqlake.dispatch.batch import Batch
from mqlake.errors import JobError

if TYPE_CHECKING:
    import pyarrow as pa

    from mqlake.jobs.bodies.plain_bodies import StoredBodies

_ROW_GROUP = 64 << 20
"""Bytes of columns that are collected before they are written."""


class PartFile(msgspec.Struct, frozen=True):
    """A complete Parquet file under a scratch name, and the name it should get."""

    path: str
    name: str
    messages: int


def write_part(
    directory: Path, name: str, batches: Iterator[Batch], stored: StoredBodies | None
) -> PartFile:
    """Write batches, scanned with `Want.EXPORT`, to a file with a unique scratch name.

    Args:
        stored: counts bodies that cannot be decompressed; None to write all bodies as stored.

    Raises:
        JobError: pyarrow is not installed.
        FormatError: the package of a codec is missing.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise JobError("pyarrow is not installed: pip install 'mqlake[parquet]'") from None
    from mqlake.dispatch.arrow import SCHEMA

    path = directory / uuid.uuid4().hex
    messages = 0
    with parquet.ParquetWriter(path, SCHEMA) as writer:
        for group in _groups(batches, stored):
            writer.write_table(pa.Table.from_batches(group, SCHEMA))
            messages += sum(columns.num_rows for columns in group)
    return PartFile(str(path), name, messages)


def _groups(
    batches: Iterator[Batch], stored: StoredBodies | None
) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    size = 0
    for columns in _columns(batches, stored):
        group.append(columns)
        size += columns.nbytes
        if size >= _ROW_GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _columns(batches: Iterator[Batch], stored: StoredBodies | None) -> Iterator[pa.RecordBatch]:
    from mqlake.dispatch.arrow import COLUMNS
    from mqlake.jobs.bodies.inner_batches import columns_of
    from mqlake.jobs.bodies.plain_bodies import decompressed

    for batch in batches:
        columns = columns_of(batch, COLUMNS)
        if stored is None:
            yield columns
        else:
            yield from decompressed(columns, stored)
