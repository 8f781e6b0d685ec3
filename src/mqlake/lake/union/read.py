"""Read the rows of a table's files as Arrow batches (a task)."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as datasets

from mqlake.errors import StoreError
from mqlake.jobs.bodies.plain_bodies import BODY, StoredBodies, decompressed
from mqlake.lake.files.field_ids import id_of, ids_of
from mqlake.lake.files.lake_files import LakeFiles
from mqlake.lake.tables.evolution import table_schema
from mqlake.lake.union.lake import LakeFile
from mqlake.lake.union.row_filter import LakeRowFilter, columns_of, expression
from mqlake.query.reading.conditions import Selection
from mqlake.query.reading.joining import put_together
from mqlake.query.reading.log import logger
from mqlake.query.reading.memory import keep_freed_memory
from mqlake.query.store.columns import with_bodies

log = logger()

_BATCH_BYTES = 8 << 20
"""Approximate bytes of columns in one batch."""


@dataclass(frozen=True)
class LakeTask:
    """The input of one task from a table.

    Attributes:
        decompress: whether bodies are decompressed, if `sysFlag` says that they are compressed.
        lake: what reads the files.
    """

    files: tuple[LakeFile, ...]
    selection: Selection
    decompress: bool
    lake: LakeFiles = LakeFiles()  # noqa: RUF009 (frozen)


def read(task: LakeTask, schema: Any) -> Iterator[Any]:
    """Yield the selected rows of a task as `pyarrow.RecordBatch`es of an Arrow schema.

    Raises:
        StoreError: a file no longer exists, or cannot be read.
    """
    keep_freed_memory()
    wanted = with_bodies(schema.names) if task.decompress else set(schema.names)
    extra = sorted((columns_of(task.selection) | wanted).difference(schema.names))
    needed = pa.schema([*_without_metadata(schema), *table_schema(tuple(extra))])
    row_filter = LakeRowFilter(task.selection)
    stored = StoredBodies()
    for file in task.files:
        rows = _rows(file, needed, task)
        chosen = (row_filter.choose(batch) for batch in rows)
        plain = (
            part
            for batch in chosen
            if batch.num_rows
            for part in (
                decompressed(batch, stored) if BODY in wanted and task.decompress else (batch,)
            )
        )
        yield from put_together(_fitted(batch, schema) for batch in plain)
    stored.report(log.warning)


def _without_metadata(schema: Any) -> list[Any]:
    return [field.with_nullable(True).remove_metadata() for field in schema]


def _fitted(batch: Any, schema: Any) -> Any:
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _rows(file: LakeFile, needed: Any, task: LakeTask) -> Iterator[Any]:
    """Yield a file's rows for which `expression` is true, without deleted ones."""
    wanted = expression(task.selection)
    try:
        fragment = _fragment(file, task.lake)
        inside = _names_inside(fragment, needed.names, file.ids)
        # The expression has the names of messages: they are the file's, unless another program
        # wrote it.
        is_pushed = file.deleted is None and inside == needed.names
        batches = fragment.to_batches(
            schema=pa.schema(map(pa.Field.with_name, needed, inside)),
            columns=inside,
            filter=wanted if is_pushed else None,
            batch_size=_batch_rows(fragment),
            batch_readahead=1,
            fragment_readahead=0,
            use_threads=False,
        )
        if is_pushed:
            yield from batches
            return
        for batch in batches if file.deleted is None else _kept(batches, file.deleted):
            named = batch.rename_columns(needed.names)
            yield named if wanted is None else named.filter(wanted)
    except FileNotFoundError:
        raise StoreError(
            f"{file.path}: the file was removed while the query ran: old versions of the table "
            "expired; run the query again"
        ) from None
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{file.path}: {error}") from None


def _names_inside(fragment: Any, names: list[str], ids: Mapping[str, int] | None) -> list[str]:
    """Return the names that a file has for columns; those that it lacks get a name of their own."""
    schema = fragment.physical_schema if ids else None
    if ids is None or schema is None or None in ids_of(schema):
        return names
    there = {id_of(field): field.name for field in schema}
    return [there.get(ids.get(name), f"{name} is not in this file") for name in names]


def _fragment(file: LakeFile, lake: LakeFiles) -> Any:
    is_moved = file.later is not None and not Path(file.path).exists()
    path = file.later if is_moved and file.later is not None else file.path
    options = {}
    if file.topic is not None:
        options["partition_expression"] = datasets.field("topic") == file.topic
    filesystem, inner = lake.source(path)
    return datasets.ParquetFileFormat().make_fragment(inner, filesystem, **options)


def _batch_rows(fragment: Any) -> int:
    """Return the number of rows in a batch, by the size of the file's rows."""
    metadata = fragment.metadata
    groups = range(metadata.num_row_groups)
    size = sum(metadata.row_group(group).total_byte_size for group in groups)
    return max(1, min(1 << 17, metadata.num_rows * _BATCH_BYTES // (size + 1)))


def _kept(batches: Iterator[Any], deleted: Any) -> Iterator[Any]:
    """Yield the rows that are not deleted."""
    start = 0
    for batch in batches:
        end = start + batch.num_rows
        first, last = np.searchsorted(deleted, [start, end])
        mask = np.ones(batch.num_rows, np.bool_)
        mask[deleted[first:last] - start] = False
        yield batch.filter(pa.array(mask))
        start = end
