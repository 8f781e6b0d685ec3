"""Merge small files into larger ones."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import parquet

from mqlake.spark.follow.data_file import ROW_GROUP, DataFile, FileWriter

MOST_FILES = 500
"""Files of one merge."""


@dataclass(frozen=True)
class Merge:
    """Files of one partition whose rows are to be in as few files as can be (a task's job).

    Attributes:
        inputs: in the order that the rows are to have.
        directory: where the new files go; "" for beside the first of the old ones.
    """

    inputs: tuple[DataFile, ...]
    directory: str = ""


@dataclass(frozen=True)
class Merged:
    """Files, and the ones that have the same rows."""

    inputs: tuple[DataFile, ...]
    outputs: tuple[DataFile, ...]


def small_files(files: Iterable[DataFile], target: int) -> Iterator[tuple[DataFile, ...]]:
    """Yield files that should be one, by partition.

    The largest of them is no larger than twice the others together. So the size of the file that a
    byte is in grows by half at least whenever it is written again.
    """
    partitions: dict[tuple[str, str], list[DataFile]] = {}
    for file in files:
        if file.size < target:
            partitions.setdefault((file.topic, file.day), []).append(file)
    for found in partitions.values():
        for group in _groups(sorted(found, key=lambda file: file.size), target):
            while len(group) > 1 and group[-1].size > 2 * sum(file.size for file in group[:-1]):
                group.pop()
            if len(group) > 1:
                yield tuple(sorted(group, key=lambda file: Path(file.path).name))


def _groups(files: list[DataFile], target: int) -> Iterator[list[DataFile]]:
    group: list[DataFile] = []
    size = 0
    for file in files:
        if group and (size + file.size > target or len(group) == MOST_FILES):
            yield group
            group, size = [], 0
        group.append(file)
        size += file.size
    if group:
        yield group


def merge(job: Merge) -> Merged:
    """Write the rows of files to new ones, one for each set of columns (a task).

    Files with other columns are not mixed: what a column is that a file lacks, the table decides.
    A file alone stays as it is.
    """
    if len(job.inputs) == 1:
        return Merged(job.inputs, job.inputs)
    by_columns: dict[Any, list[DataFile]] = {}
    for file in job.inputs:
        schema = parquet.read_schema(file.path).remove_metadata()
        by_columns.setdefault(schema, []).append(file)
    outputs = [_merged(job, schema, files) for schema, files in by_columns.items()]
    return Merged(job.inputs, tuple(outputs))


def _merged(job: Merge, schema: Any, files: list[DataFile]) -> DataFile:
    first = Path(files[0].path)
    stem = first.name.rpartition("-")[0]
    writer = FileWriter(Path(job.directory) if job.directory else first.parent, stem, schema)
    try:
        gathered: list[Any] = []
        size = 0
        for batch in _batches(files):
            gathered.append(batch)
            size += batch.nbytes
            if size >= ROW_GROUP:
                writer.write(gathered)
                gathered, size = [], 0
        if gathered:
            writer.write(gathered)
        return writer.finish(files[0].topic, files[0].day)
    except BaseException:
        writer.discard()
        raise


def _batches(files: list[DataFile]) -> Iterator[Any]:
    for file in files:
        with parquet.ParquetFile(file.path) as opened:
            rows = max(1, opened.metadata.num_rows)
            groups = range(opened.metadata.num_row_groups)
            size = sum(opened.metadata.row_group(group).total_byte_size for group in groups)
            yield from opened.iter_batches(max(1, min(rows, rows * (ROW_GROUP // 4) // (size + 1))))
