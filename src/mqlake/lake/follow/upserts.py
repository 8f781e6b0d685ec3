"""Keep the newest message of each key: a batch's rows replace older ones.

A file with older rows is rewritten without them. The batch's files, the rewritten files and the
removal of the old ones are one commit, so the table gets a batch as a whole, and once.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

import importlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from mqlake.errors import JobError
from mqlake.jobs.engine import Engine
from mqlake.lake.files.compaction import file_batches
from mqlake.lake.files.data_file import DataFile, FileWriter
from mqlake.lake.files.lake_files import LakeFiles
from mqlake.lake.options import STATE, FollowOptions, Format
from mqlake.lake.tables.evolution import wanted_schema
from mqlake.lake.tables.table import LakeTable
from mqlake.query.reading.parsing import suggestion

compute: Any = importlib.import_module("pyarrow.compute")  # Its functions are created at run time.

NEEDED = ("body", "topic", "physicalOffset", "queueOffset")
"""Columns of a message that decide what happens to its key."""

_LOCAL = LakeFiles()
"""Tables by key are in directories."""


@dataclass(frozen=True)
class Rewrite:
    """A file, and the keys whose rows are to be removed from it (a task's job).

    Attributes:
        keys: Parquet file with the columns `topic` and `key`.
        column: the column of the file that contains the keys.
    """

    file: DataFile
    keys: str
    column: str


@dataclass(frozen=True)
class RewrittenFile:
    """The result for a file: `changed` if it had rows of the keys, `output` if others remain."""

    file: DataFile
    changed: bool
    output: DataFile | None


def check_upsert(options: FollowOptions) -> None:
    """Check that a table can be upserted into.

    Raises:
        JobError: its format, partitions or columns do not allow it.
    """
    column = options.upsert_by
    if column is None:
        return
    if options.format is Format.PARQUET or "topic" not in options.partition_by:
        raise JobError(
            "--upsert-by: only in Delta Lake and Iceberg tables that are partitioned by topic"
        )
    if options.url is not None:
        raise JobError(
            f"--upsert-by: {options.url} is on an object store; tables by key must be in a "
            "directory: give another --out"
        )
    schema = wanted_schema(options)
    if column not in schema.names:
        found = suggestion(column, schema.names)
        raise JobError(f"--upsert-by {column}: the table has no such column; {found}")
    if column == "topic" or "." in column or not _is_key(schema.field(column).type):
        raise JobError(
            f"--upsert-by {column}: a key is a column of text, bytes or whole numbers, or keys"
        )


def _is_key(type_: Any) -> bool:
    kinds = (pa.types.is_string, pa.types.is_binary, pa.types.is_integer)
    is_list = pa.types.is_list(type_) and pa.types.is_string(type_.value_type)
    return is_list or any(is_kind(type_) for is_kind in kinds)


class Upserting:
    """Prepares the commit of a batch of upserts.

    Args:
        engine: runs the tasks that rewrite files.
    """

    def __init__(self, engine: Engine, options: FollowOptions) -> None:
        assert options.upsert_by is not None
        self._engine, self._column = engine, options.upsert_by
        self._keys = options.out / STATE / "keys"

    @property
    def column(self) -> str:
        """The column whose values are keys."""
        return self._column

    def replaced(self, table: LakeTable, keys: Any) -> tuple[list[DataFile], list[DataFile]]:
        """Return files rewritten without older rows of a batch's keys, and the old files.

        Args:
            keys: a `pyarrow.Table` of the columns `topic` and `key`.

        Raises:
            JobError: the table has files that other programs wrote, which may have older rows.
        """
        files = table.files()
        if table.has_other_files():  # After `files`, so that none was replaced.
            raise JobError(
                "the table has files that other programs wrote: --upsert-by replaces rows of files "
                "that mqlake follow wrote only"
            )
        done = self._rewrite(files, keys)
        return [one.output for one in done if one.output], [one.file for one in done]

    def _rewrite(self, files: Sequence[DataFile], keys: Any) -> list[RewrittenFile]:
        topics = set(compute.unique(keys.column("topic")).to_pylist())
        wanted = [file for file in files if file.topic in topics]
        if not wanted:
            return []
        self._keys.mkdir(parents=True, exist_ok=True)
        for path in self._keys.glob("*.parquet"):
            path.unlink()  # From attempts that were killed.
        path = self._keys / f"{uuid.uuid4().hex}.parquet"
        parquet.write_table(keys, path)
        try:
            jobs = [Rewrite(file, str(path), self._column) for file in wanted]
            found = self._engine.run(rewrite, jobs, "replace older rows")
        finally:
            path.unlink(missing_ok=True)
        return [one for one in found if one.changed]


def rewrite(job: Rewrite) -> RewrittenFile:
    """Rewrite a file without the rows of keys, if it has any."""
    wanted = [("topic", "=", job.file.topic)]
    unnamed: Any = None  # Names of directories above are not columns.
    table = parquet.read_table(job.keys, filters=wanted, partitioning=unnamed)
    keys = table.column("key").combine_chunks()
    if pa.types.is_integer(keys.type):
        keys = keys.cast(pa.int64())  # A column may have been widened after the file was written.
    has_older = partial(_has_key, keys, job.column)
    with parquet.ParquetFile(job.file.path) as opened:
        if job.column not in opened.schema_arrow.names:
            return RewrittenFile(job.file, False, None)
        there = opened.iter_batches(columns=[job.column])
        if not any(compute.any(has_older(batch)).as_py() for batch in there):
            return RewrittenFile(job.file, False, None)
    return RewrittenFile(job.file, True, _write(job, has_older))


def _write(job: Rewrite, has_older: Any) -> DataFile | None:
    path = Path(job.file.path)
    schema = parquet.read_schema(path).remove_metadata()
    writer = FileWriter(_LOCAL, str(path.parent), path.name.rpartition("-")[0], schema)
    rows = 0
    try:
        for kept in _kept(job.file, has_older):
            writer.write([kept])
            rows += kept.num_rows
        if rows:
            return writer.finish(job.file.topic, job.file.day)
    except BaseException:
        writer.discard()
        raise
    writer.discard()
    return None


def _kept(file: DataFile, has_older: Any) -> Iterator[Any]:
    for batch in file_batches(_LOCAL, [file]):
        kept = batch.filter(compute.invert(has_older(batch)))
        if kept.num_rows:
            yield kept


def _has_key(keys: Any, column: str, batch: Any) -> Any:
    """Return which rows of a batch have one of the keys."""
    values = batch.column(batch.schema.get_field_index(column))
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        values = compute.binary_join(values, " ")
    return compute.is_in(values.cast(keys.type), value_set=keys)
